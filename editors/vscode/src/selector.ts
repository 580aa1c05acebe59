// Queries as profiling servers write them: a profile type, and labels in braces.

/** A type, narrowed to these values of labels; any of several. */
export function selector(profileType: string, labels: ReadonlyMap<string, readonly string[]>): string {
  const matchers = [...labels].filter(([, values]) => values.length > 0).map(([label, values]) => matcher(label, values));
  return matchers.length === 0 ? profileType : `${profileType}{${matchers.join(",")}}`;
}

function matcher(label: string, values: readonly string[]): string {
  const [only, ...rest] = values;
  if (only !== undefined && rest.length === 0) return `${label}=${quoted(only)}`;
  return `${label}=~${quoted(values.map(literal).join("|"))}`;
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

/** A regular expression that matches nothing but this. */
function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
