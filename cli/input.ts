// The parsed command line of one command, read by type.
import { wrongUsage } from './failure.ts'

export class Input {
  readonly #args: readonly unknown[]
  readonly #options: Readonly<Record<string, unknown>>

  /** @param args one entry for each declared argument; a variadic one is an array */
  constructor (args: readonly unknown[], options: Readonly<Record<string, unknown>>) {
    this.#args = args
    this.#options = options
  }

  /** A required argument, by its position. */
  argument (index: number): string {
    const value = this.#args[index]
    if (typeof value !== 'string') throw wrongUsage(`argument ${index + 1} is missing`)
    return value
  }

  optionalArgument (index: number): string | undefined {
    const value = this.#args[index]
    return typeof value === 'string' ? value : undefined
  }

  /** A variadic argument. */
  many (index: number): string[] {
    const value = this.#args[index]
    return Array.isArray(value) ? value.map(String) : []
  }

  text (option: string): string | undefined {
    const value = this.#options[option]
    return typeof value === 'string' ? value : undefined
  }

  flag (option: string): boolean {
    return this.#options[option] === true
  }

  /** An option that may be given as `--x` and `--no-x`; undefined when neither is given. */
  choice (option: string): boolean | undefined {
    const value = this.#options[option]
    return typeof value === 'boolean' ? value : undefined
  }

  list (option: string): string[] {
    const value = this.#options[option]
    return Array.isArray(value) ? value.map(String) : []
  }

  integer (option: string): number | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    if (!/^-?\d{1,15}$/.test(text)) throw wrongUsage(`--${dashed(option)}: ${text} is not a whole number`)
    return Number(text)
  }

  number (option: string): number | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    const value = Number(text)
    if (text.trim() === '' || !Number.isFinite(value)) throw wrongUsage(`--${dashed(option)}: ${text} is not a number`)
    return value
  }

  /** `KEY=VALUE` options as an object; undefined when none is given. */
  pairs (option: string): Record<string, string> | undefined {
    const texts = this.list(option)
    if (texts.length === 0) return undefined
    return Object.fromEntries(texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw wrongUsage(`--${dashed(option)}: ${text} is not KEY=VALUE`)
      return [text.slice(0, at), text.slice(at + 1)]
    }))
  }
}

function dashed (option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
