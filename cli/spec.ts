// What a command looks like on the command line. The catalogue holds one of these for each; what it does is loaded when it is called.
import type { Input } from './input.ts'
import type { Session } from './session.ts'

/** `many`: may be given several times. The others are plain text, or flags where the flags name no value. */
export interface OptionSpec {
  /** as commander reads them: `-e, --env <KEY=VALUE>` */
  readonly flags: string
  readonly description: string
  readonly many?: boolean
  /** the only values there are */
  readonly values?: readonly string[]
}

/** Runs to the end and gives the exit code. */
export type Run = (session: Session, input: Input) => Promise<number>

export interface CommandSpec {
  /** `ps`, or with its group `snapshot create` */
  readonly name: string
  /** as commander reads them: `<instance...>` */
  readonly args?: string
  readonly summary: string
  /** more than the summary says */
  readonly details?: string
  readonly options?: readonly OptionSpec[]
  /** whole command lines */
  readonly examples: readonly string[]
  /** what begins with a dash after the first argument belongs to the program that is run */
  readonly passThrough?: boolean
  /** what the first argument names, for completion */
  readonly names?: NameKind
  /** it takes away what does not come back: its code asks before, by `confirmed`, and its help says so */
  readonly asks?: true
  readonly load: () => Promise<{ readonly run: Run }>
}

export type NameKind = 'instances' | 'images' | 'snapshots' | 'volumes' | 'devices' | 'builds' | 'keys' | 'webhooks' | 'ingresses' | 'contexts'

export interface Section {
  readonly title: string
  readonly commands: readonly CommandSpec[]
}

/** What the help and the manual page say of a command, in whole sentences. */
export function descriptionOf ({ summary, details, asks }: CommandSpec): string {
  return [`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`, ...details === undefined ? [] : [details], ...asks === true ? [ASKS] : []].join(' ')
}

const ASKS = 'On a terminal it asks first, but not with --yes; without a terminal, as in a script, it does not ask.'
