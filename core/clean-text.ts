// Makes texts that others chose (guests, images, users of the API) harmless: no character of them moves the cursor or changes colours.

/** Shows control characters, and characters that change the direction of text, as escapes. */
export function clean (text: string): string {
  return text.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code === 10 ? '\\n' : code === 9 ? '\\t' : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** The same for JSON, which stays the same JSON: outside of its texts it has no such character but the ends of lines. */
export function cleanJson (json: string): string {
  return json.split('\n').map(clean).join('\n')
}

/** The same for YAML as `yaml` writes it: texts with these characters are in double quotes. Those that change the direction of text may be in plain ones, and stay. */
export function cleanYaml (yaml: string): string {
  return yaml.replace(/[\u007f-\u009f]/g, clean)
}
