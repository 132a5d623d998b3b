// Reads an OCI image configuration: the program and its settings. A stranger wrote it, so everything is checked.
import { constants } from 'node:os'
import { Type, type Static } from 'typebox'
import { shape } from '../../core/json/shape.ts'
import { historyOf } from './layers/history.ts'

const SIGTERM = 15
/** SIGRTMIN's number in C libraries on Linux */
const SIGRTMIN = 34
const SIGRTMAX = 64

const Strings = Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()]))
const Text = Type.Optional(Type.Union([Type.String(), Type.Null()]))

const ImageConfiguration = Type.Object({
  architecture: Text,
  os: Text,
  variant: Text,
  config: Type.Optional(Type.Union([Type.Null(), Type.Object({
    Cmd: Strings, Entrypoint: Strings, Env: Strings, WorkingDir: Text, User: Text, StopSignal: Text
  })]))
})
const isConfiguration = shape(ImageConfiguration)

/** An image's settings for running it. */
export interface RunConfig {
  readonly cmd?: readonly string[] | undefined
  readonly entrypoint?: readonly string[] | undefined
  readonly env: Readonly<Record<string, string>>
  readonly workingDir?: string | undefined
  readonly user?: string | undefined
  readonly stopSignal: number
}

export interface ReadConfig {
  readonly platform: { os: string, architecture: string, variant?: string | undefined }
  readonly run: RunConfig
  /** the command that made each layer, `''` for none; absent when the image does not say it */
  readonly createdBy?: readonly string[]
}

/** Reads the configuration file of an image; undefined when it is invalid. */
export function readImageConfig (json: string): ReadConfig | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  if (!isConfiguration(parsed)) return undefined
  const createdBy = historyOf(parsed)
  return {
    platform: { os: parsed.os || 'linux', architecture: parsed.architecture ?? '', variant: parsed.variant || undefined },
    run: runConfig(parsed.config ?? {}),
    ...createdBy === undefined ? {} : { createdBy }
  }
}

type Section = NonNullable<NonNullable<Static<typeof ImageConfiguration>['config']>>

function runConfig (config: Section): RunConfig {
  return {
    cmd: config.Cmd ?? undefined,
    entrypoint: config.Entrypoint ?? undefined,
    env: readEnvironment(config.Env ?? []),
    workingDir: config.WorkingDir || undefined,
    user: config.User || undefined,
    stopSignal: readSignal(config.StopSignal ?? '')
  }
}

// A later entry wins, as in a container; an entry without `=` sets nothing.
function readEnvironment (entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(entries.flatMap((entry) => {
    const mark = entry.indexOf('=')
    return mark <= 0 ? [] : [[entry.slice(0, mark), entry.slice(mark + 1)]]
  }))
}

/** `SIGQUIT`, `quit`, `3` or `SIGRTMIN+3` as a number; SIGTERM for an invalid text. */
export function readSignal (written: string): number {
  const text = written.trim().toUpperCase()
  if (/^\d+$/.test(text)) return inRange(Number(text))
  const realTime = /^(?:SIG)?RTM(IN|AX)(?:([+-])(\d+))?$/.exec(text)
  if (realTime !== null) {
    const base = realTime[1] === 'IN' ? SIGRTMIN : SIGRTMAX
    const offset = Number(realTime[3] ?? 0) * (realTime[2] === '-' ? -1 : 1)
    return inRange(base + offset)
  }
  const name = text.startsWith('SIG') ? text : `SIG${text}`
  const found = Object.entries(constants.signals).find(([signal]) => signal === name)
  return found === undefined ? SIGTERM : found[1]
}

function inRange (signal: number): number {
  return signal >= 1 && signal <= SIGRTMAX ? signal : SIGTERM
}
