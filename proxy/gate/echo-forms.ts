// The forms in which origins are known to send secrets back.
import type { InjectRule } from '../contract/control.ts'

/** A text that gives a secret away, and its replacement. It is also looked for behind percent-encoding: see `echo.ts`. */
export interface Echo {
  readonly text: string
  readonly mock: string
  /** the text in lower case, since names of headers have no case of their own; absent: it is too short to be told from a part of a usual name */
  readonly inNames: string | undefined
}

// Shorter texts are found where nobody meant them.
const RECOGNIZABLE = 6

// A guest can ask for any number of hosts that one rule is for, and the forms of a long secret are a hundred kilobytes.
const known = new WeakMap<InjectRule, readonly Echo[]>()

/** The forms of all secrets together, in the order in which they are to be replaced: the longest first. Otherwise a part of a text, or a secret with which another one begins, would be replaced before the whole is found. */
export function echoesOf (rules: readonly InjectRule[]): Echo[] {
  const echoes = new Map<string, Echo>()
  for (const rule of rules) for (const echo of echoesOfOne(rule)) if (!echoes.has(echo.text)) echoes.set(echo.text, echo)
  return [...echoes.values()].sort((a, b) => b.text.length - a.text.length)
}

/** What names of headers are searched for, in lower case, the shortest first. */
export function namesakesOf (echoes: readonly Echo[]): string[] {
  return [...new Set(echoes.map(({ inNames }) => inNames))].filter(text => text !== undefined).reverse()
}

function echoesOfOne (rule: InjectRule): readonly Echo[] {
  let echoes = known.get(rule)
  if (echoes === undefined) {
    const texts = [...new Set(formsOf(rule.value))].filter(text => text !== '')
    echoes = texts.map(text => ({ text, mock: rule.mock, inNames: text.length < RECOGNIZABLE ? undefined : text.toLowerCase() }))
    known.set(rule, echoes)
  }
  return echoes
}

/** As it is, in UTF-8, as forms write its spaces, and in base64 at each of the three offsets in a longer text. Lines of a header are read as latin1, so that each character is a byte. */
function formsOf (value: string): string[] {
  const texts = [value, Buffer.from(value, 'utf8').toString('latin1')]
  return [...texts, ...texts.map(text => text.replaceAll(' ', '+')), ...base64Forms(value)]
}

/** The base64 of the secret at each offset, without the characters that depend on the neighbouring bytes. */
function base64Forms (value: string): string[] {
  const bytes = Buffer.from(value, 'latin1')
  if (bytes.length < RECOGNIZABLE) return []
  const forms = [0, 1, 2].map(offset => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes])
    const first = offset === 0 ? 0 : offset + 1
    return padded.toString('base64').slice(first, Math.floor(padded.length * 8 / 6))
  })
  return [...forms, ...forms.map(form => form.replaceAll('+', '-').replaceAll('/', '_'))]
}
