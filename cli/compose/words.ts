// Splits a command that is written as one text, as the Compose Specification says: like a shell, but without one.

/** Undefined when a quote is not closed. */
export function wordsOf (text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (quote === "'") {
      if (character === quote) quote = ''
      else word = (word ?? '') + character
    } else if (character === '\\' && (quote === '' || '"\\$`'.includes(text.charAt(at + 1)))) {
      at += 1
      word = (word ?? '') + text.charAt(at)
    } else if (quote !== '' && character === quote) {
      quote = ''
    } else if (quote === '' && (character === '"' || character === "'")) {
      quote = character
      word ??= ''
    } else if (quote === '' && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}
