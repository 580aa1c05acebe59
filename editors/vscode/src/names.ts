// Names of functions where there is little room.

/** A Go name without the folders of its package: `logstats.parse` of `example.com/logstats.parse`. */
export function short(name: string): string {
  const [head = "", ...type] = name.split("[");
  return [head.slice(head.lastIndexOf("/") + 1), ...type].join("[");
}

/** The same at the end of a row that begins with a share. */
export function shortTitle(title: string): string {
  const [, share = "", name = ""] = /^(\s*\S+\s+)(.*)$/s.exec(title) ?? [];
  return name === "" ? title : share + short(name);
}
