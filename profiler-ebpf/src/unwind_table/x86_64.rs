//! What DWARF's rules mean on x86-64: the only file to write anew for another processor.

use gimli::{
    CfaRule, Encoding, Expression, Operation, Reader, Register, RegisterRule, UnwindExpression, UnwindSection,
    UnwindTableRow, X86_64,
};

use super::{Cfa, FramePointer, Rule};

/// Where the return address is when nobody says otherwise, from the CFA.
const RETURN_ADDRESS: i32 = -8;

/// The rule that a row stands for.
pub(super) fn rule<R, S>(row: &UnwindTableRow<R::Offset>, section: &S, encoding: Encoding) -> Rule
where
    R: Reader,
    S: UnwindSection<R>,
{
    let operations = |expression: &UnwindExpression<R::Offset>| operations(expression.get(section).ok(), encoding);

    let return_address = match row.register(X86_64::RA) {
        Some(RegisterRule::Undefined) => return Rule::plain(Cfa::End),
        Some(RegisterRule::Offset(offset)) => offset,
        None => i64::from(RETURN_ADDRESS),
        Some(_) => return Rule::plain(Cfa::Unsupported),
    };
    let Ok(return_address) = i32::try_from(return_address) else { return Rule::plain(Cfa::Unsupported) };

    let mut rule = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let cfa = match *register {
                X86_64::RSP => Cfa::StackPointer,
                X86_64::RBP => Cfa::FramePointer,
                _ => Cfa::Unsupported,
            };
            i32::try_from(*offset).map_or(Rule::plain(Cfa::Unsupported), |offset| Rule {
                cfa_offset: offset,
                extra: return_address,
                ..Rule::plain(cfa)
            })
        }
        CfaRule::Expression(expression) => computed(&operations(expression)),
    };
    if rule.cfa == Cfa::Unsupported || (rule.cfa_is_computed() && return_address != RETURN_ADDRESS) {
        return Rule::plain(Cfa::Unsupported);
    }

    (rule.fp, rule.fp_offset) = match row.register(X86_64::RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => (FramePointer::Same, 0),
        Some(RegisterRule::Offset(offset)) => {
            i32::try_from(offset).map_or((FramePointer::Lost, 0), |offset| (FramePointer::AtCfa, offset))
        }
        // "At the address that rbp holds": how realigned frames say where they pushed it.
        Some(RegisterRule::Expression(expression)) => match operations(&expression)[..] {
            [Operation::RegisterOffset { register: X86_64::RBP, offset, .. }] => {
                i32::try_from(offset).map_or((FramePointer::Lost, 0), |offset| (FramePointer::AtFramePointer, offset))
            }
            _ => (FramePointer::Lost, 0),
        },
        Some(_) => (FramePointer::Lost, 0),
    };
    rule
}

impl Rule {
    fn cfa_is_computed(self) -> bool {
        matches!(self.cfa, Cfa::Plt | Cfa::DerefFramePointer | Cfa::DerefStackPointer)
    }
}

/// Operations of an expression; none when it is broken or longer than any that we understand.
fn operations<R: Reader>(expression: Option<Expression<R>>, encoding: Encoding) -> Vec<Operation<R>> {
    const LONGEST: usize = 12;
    let mut operations = Vec::new();
    let Some(expression) = expression else { return operations };
    let mut rest = expression.operations(encoding);
    while let Ok(Some(operation)) = rest.next() {
        if operations.len() == LONGEST {
            return Vec::new();
        }
        operations.push(operation);
    }
    operations
}

/// The CFA as an expression. Compilers and linkers write few of them.
fn computed<R: Reader>(operations: &[Operation<R>]) -> Rule {
    let unsupported = Rule::plain(Cfa::Unsupported);
    let (register, offset, rest) = match operations {
        [Operation::RegisterOffset { register, offset, .. }, rest @ ..] => (*register, *offset, rest),
        _ => return unsupported,
    };
    let Ok(cfa_offset) = i32::try_from(offset) else { return unsupported };
    match (register, rest) {
        // A frame that was realigned keeps the address of the old one: *(rbp - 8), *(rsp + 24), *(rsp + 24) + 16.
        (X86_64::RBP | X86_64::RSP, [Operation::Deref { .. }, rest @ ..]) => {
            let extra = match rest {
                [] => 0,
                [Operation::PlusConstant { value }] => match i32::try_from(*value) {
                    Ok(value) => value,
                    Err(_) => return unsupported,
                },
                _ => return unsupported,
            };
            let cfa = if register == X86_64::RBP { Cfa::DerefFramePointer } else { Cfa::DerefStackPointer };
            Rule { cfa, cfa_offset, extra, ..Rule::default() }
        }
        // Linkers' stubs: rsp + 8 + ((rip & 15) >= n) * 8, since each of them pushes once, at byte n.
        (
            X86_64::RSP,
            [
                Operation::RegisterOffset { register: X86_64::RA, offset: 0, .. },
                Operation::UnsignedConstant { value: 15 },
                Operation::And,
                Operation::UnsignedConstant { value: at },
                Operation::Ge,
                Operation::UnsignedConstant { value: 3 },
                Operation::Shl,
                Operation::Plus,
            ],
        ) if cfa_offset == 8 && *at < 16 => {
            Rule { cfa: Cfa::Plt, cfa_offset: i32::try_from(*at).unwrap_or_default(), ..Rule::default() }
        }
        _ => unsupported,
    }
}

/// The register numbers are patterns above.
const _: (Register, Register) = (X86_64::RBP, X86_64::RSP);
