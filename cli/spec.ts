// The description of a command on the command line. The catalogue has one for each command; the code of the command is loaded when it is called.
import type { Input } from './input.ts'
import type { Session } from './session.ts'

/** `many`: may be given several times. The others are plain text, or booleans when the flags name no value. */
export interface OptionSpec {
  /** in commander's syntax: `-e, --env <KEY=VALUE>` */
  readonly flags: string
  readonly description: string
  readonly many?: boolean
  /** the only valid values */
  readonly values?: readonly string[]
}

/** Runs to the end and returns the exit code. */
export type Run = (session: Session, input: Input) => Promise<number>

export interface CommandSpec {
  /** `ps`, or with its group `snapshot create` */
  readonly name: string
  /** in commander's syntax: `<instance...>` */
  readonly args?: string
  readonly summary: string
  /** text in addition to the summary */
  readonly details?: string
  readonly options?: readonly OptionSpec[]
  /** whole command lines */
  readonly examples: readonly string[]
  /** options after the first argument belong to the program that is run */
  readonly passThrough?: boolean
  /** the kind of thing that the first argument names, for completion */
  readonly names?: NameKind
  /** it removes something for good: its code must ask first, by `confirmed`, and its help says so */
  readonly asks?: true
  readonly load: () => Promise<{ readonly run: Run }>
}

export type NameKind = 'instances' | 'images' | 'snapshots' | 'volumes' | 'devices' | 'builds' | 'keys' | 'webhooks' | 'ingresses' | 'contexts'

export interface Section {
  readonly title: string
  readonly commands: readonly CommandSpec[]
}

/** The text of a command in the help and in the manual page, in whole sentences. */
export function descriptionOf ({ summary, details, asks }: CommandSpec): string {
  return [`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`, ...details === undefined ? [] : [details], ...asks === true ? [ASKS] : []].join(' ')
}

const ASKS = 'On a terminal it asks first, but not with --yes; without a terminal, as in a script, it does not ask.'
