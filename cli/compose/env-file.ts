// Files of variables, in the format of the Compose Specification for `env_file` and `.env`.
import { readFile } from 'node:fs/promises'
import { hasCode } from '../../core/errors/system-code.ts'
import { wrongUsage } from '../failure.ts'
import { expand, InterpolationFault, type Variables } from './interpolate.ts'

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$$' }

/** A name without `=` takes its value from `variables`, and is left out when it has none there. Undefined: the file does not exist. */
export async function readEnvFile (file: string, variables: Variables): Promise<ReadonlyMap<string, string> | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw wrongUsage(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  return parseEnvFile(text, variables, file)
}

export function parseEnvFile (text: string, variables: Variables, file: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  // A variable of the file can be used in the lines below it.
  const own: Variables = { get: (name) => variables.get(name) ?? values.get(name), missing: (name) => variables.missing(name) }
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim().replace(/^export /, '').trim()
    if (line === '' || line.startsWith('#')) continue
    const at = line.indexOf('=')
    const name = (at < 0 ? line : line.slice(0, at)).trim()
    if (!/^[A-Za-z_][\w.-]*$/.test(name)) throw wrongUsage(`${file}:${index + 1}: a line is NAME=VALUE`)
    try {
      const value = at < 0 ? variables.get(name) : valueOf(line.slice(at + 1).trim(), own)
      if (value !== undefined) values.set(name, value)
    } catch (error) {
      throw error instanceof InterpolationFault ? wrongUsage(`${file}:${index + 1}: ${name}: ${error.message}`) : error
    }
  }
  return values
}

function valueOf (text: string, variables: Variables): string {
  const quote = text.charAt(0)
  if (quote === "'") return text.slice(1, quoteEnd(text, quote))
  if (quote === '"') return expand(unescaped(text.slice(1, quoteEnd(text, quote))), variables)
  const comment = text.search(/\s#/)
  return expand((comment < 0 ? text : text.slice(0, comment)).trim(), variables)
}

function quoteEnd (text: string, quote: string): number {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === '\\' && quote === '"') at += 1
    else if (text[at] === quote) return at
  }
  throw new InterpolationFault('a quote is not closed on its line')
}

function unescaped (text: string): string {
  return text.replaceAll(/\\(.)/g, (whole, letter: string) => ESCAPES[letter] ?? whole)
}
