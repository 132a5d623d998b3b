// Whether a source has a test of a name. That of another test that only begins so is none.

/** @param name as it stands in the source: of a template, with its `${…}` */
export function holds (source: string, name: string): boolean {
  return source.includes(`test('${name.replaceAll("'", "\\'")}'`) || source.includes(`test(\`${name}\``)
}
