//! Files of bytes.

use std::io::{self, Write};

use super::text::address;
use super::{Program, file, function_of, line_of, name};
use crate::large_profile::{self, Fields, Message, SITES_PER_FUNCTION, start_line};

pub(super) fn pprof(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    large_profile::write(out, program.samples).map(|_| ())
}

/// A request of the newest version: everything in the dictionary, a stack of its own for each sample.
pub(super) fn otlp(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let (functions, sites) = (program.functions(), program.sites());
    let strings = |text: u64| text + 5;
    let mut dictionary = Message::default();
    dictionary.nested(1, |_| {});
    dictionary.nested(1, |mapping| {
        mapping.number(1, 0x40_0000).number(2, 0x7f00_0000_0000).number(4, 4);
    });
    dictionary.nested(2, |_| {});
    for site in 0..sites {
        dictionary.nested(2, |location| {
            location.number(1, 1).number(2, address(site));
            location.nested(3, |line| {
                line.number(1, function_of(site) + 1).number(2, line_of(site));
            });
        });
    }
    dictionary.nested(3, |_| {});
    for function in 0..functions {
        dictionary.nested(3, |message| {
            message
                .number(1, strings(2 * function))
                .number(3, strings(2 * function + 1))
                .number(4, start_line(function));
        });
    }
    for text in ["", "samples", "count", "cpu", "/usr/bin/shop"] {
        dictionary.bytes(5, text.as_bytes());
    }
    for function in 0..functions {
        dictionary.bytes(5, name(function).as_bytes());
        dictionary.bytes(5, file(function, "go").as_bytes());
    }
    dictionary.nested(6, |_| {});
    dictionary.nested(7, |_| {});
    program.each_stack(|stack| {
        let locations: Vec<u64> = stack.iter().rev().map(|&site| site + 1).collect();
        dictionary.nested(7, |stack| {
            stack.packed(1, &locations);
        });
        Ok(())
    })?;
    let mut profiles = Message::default();
    profiles.nested(2, |scope| {
        scope.nested(2, |profile| {
            profile.nested(1, |kind| {
                kind.number(1, 1).number(2, 2);
            });
            for sample in 0..program.samples {
                profile.nested(2, |message| {
                    message.number(1, u64::from(sample) + 1).packed(4, &[1]);
                });
            }
            profile.fixed64(3, 1_790_000_000_000_000_000).number(4, 60_000_000_000);
        });
    });
    let mut fields = Fields { out, written: 0 };
    fields.message(1, |message| *message = profiles)?;
    fields.message(2, |message| *message = dictionary)
}

/// Python's `marshal` of what `cProfile` keeps.
pub(super) fn pstats(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    fn int(bytes: &mut Vec<u8>, value: u64) {
        bytes.push(b'i');
        bytes.extend(u32::try_from(value).unwrap_or(u32::MAX >> 1).to_le_bytes());
    }
    fn text(bytes: &mut Vec<u8>, text: &str) {
        bytes.push(b'z');
        bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        bytes.extend(text.as_bytes());
    }
    fn key(bytes: &mut Vec<u8>, function: u64) {
        bytes.extend([b')', 3]);
        text(bytes, &file(function, "py"));
        int(bytes, start_line(function));
        text(bytes, &name(function));
    }
    fn costs(bytes: &mut Vec<u8>, calls: u64) {
        int(bytes, calls);
        int(bytes, calls);
        for seconds in [calls as f64 * 1e-4, calls as f64 * 1e-3] {
            bytes.push(b'g');
            bytes.extend(seconds.to_le_bytes());
        }
    }
    let mut callers = vec![Vec::new(); usize::try_from(program.functions()).unwrap_or(0)];
    for site in 0..program.sites() {
        let callee = usize::try_from(program.graph.callee(site)).unwrap_or(0);
        if !callers[callee].contains(&function_of(site)) {
            callers[callee].push(function_of(site));
        }
    }
    let mut bytes = vec![b'{'];
    for (function, callers) in (0..).zip(&callers) {
        key(&mut bytes, function);
        bytes.extend([b')', 5]);
        costs(&mut bytes, 1 + callers.len() as u64);
        bytes.push(b'{');
        for &caller in callers {
            key(&mut bytes, caller);
            bytes.extend([b')', 4]);
            costs(&mut bytes, 1);
        }
        bytes.push(b'0');
        out.write_all(&std::mem::take(&mut bytes))?;
    }
    out.write_all(b"0")
}

/// Austin's binary form: frames are described once and referred to.
pub(super) fn mojo(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    fn number(bytes: &mut Vec<u8>, value: u64) {
        let mut rest = value >> 6;
        let mut byte = (value & 0x3f) as u8;
        while rest > 0 {
            bytes.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        bytes.push(byte);
    }
    fn text(bytes: &mut Vec<u8>, text: &str) {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    let mut bytes = b"MOJ\x03".to_vec();
    for (key, value) in [("mode", "wall"), ("interval", "5000")] {
        bytes.push(1);
        text(&mut bytes, key);
        text(&mut bytes, value);
    }
    for function in 0..program.functions() {
        for (key, content) in [(2 * function + 2, name(function)), (2 * function + 3, file(function, "py"))] {
            bytes.push(11);
            number(&mut bytes, key);
            text(&mut bytes, &content);
        }
        for site in function * SITES_PER_FUNCTION..(function + 1) * SITES_PER_FUNCTION {
            bytes.push(3);
            for value in [site + 1, 2 * function + 3, 2 * function + 2, line_of(site), 0, 0, 0] {
                number(&mut bytes, value);
            }
        }
    }
    program.each_stack(|stack| {
        bytes.push(2);
        number(&mut bytes, 4321);
        number(&mut bytes, 0);
        text(&mut bytes, "10e2");
        for site in stack {
            bytes.push(5);
            number(&mut bytes, site + 1);
        }
        bytes.push(9);
        number(&mut bytes, 5003);
        out.write_all(&std::mem::take(&mut bytes))
    })
}
