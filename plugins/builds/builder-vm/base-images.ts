// Which images a Dockerfile builds upon. Reads as much of it as that needs: directives, continued lines, the arguments before the first stage, and FROM.

/** A stage's beginning. */
interface Stage {
  readonly from: string
  readonly name: string | undefined
}

export interface BaseImages {
  /** as they are written, each once, without stages and `scratch` */
  readonly all: readonly string[]
  /** what the last stage, or the one that is asked for, is made of in the end; when that is `scratch`, the first of all */
  readonly main: string | undefined
}

/** @param platform what the predefined arguments say, such as `linux/amd64` */
export function baseImages (dockerfile: string, buildArgs: Readonly<Record<string, string>>, target: string | undefined, platform: string): BaseImages {
  const stages = readStages(dockerfile, buildArgs, platform)
  const all = [...new Set(stages.filter((stage, index) => !isStage(stages, index, stage.from) && stage.from !== 'scratch').map((stage) => stage.from))]
  const wanted = target === undefined ? stages.length - 1 : indexOf(stages, stages.length, target)
  const root = rootOf(stages, wanted)
  return { all, main: root === undefined || root === 'scratch' ? all[0] : root }
}

function rootOf (stages: readonly Stage[], index: number): string | undefined {
  const stage = stages[index]
  if (stage === undefined) return undefined
  const before = indexOf(stages, index, stage.from)
  return before === -1 ? stage.from : rootOf(stages, before)
}

function isStage (stages: readonly Stage[], index: number, name: string): boolean {
  return indexOf(stages, index, name) !== -1
}

/** The stage before `end` that has this name or number; -1 when there is none. */
function indexOf (stages: readonly Stage[], end: number, name: string): number {
  const byName = stages.slice(0, end).findLastIndex((stage) => stage.name === name.toLowerCase())
  if (byName !== -1) return byName
  return /^\d+$/.test(name) && Number(name) < end ? Number(name) : -1
}

function readStages (dockerfile: string, buildArgs: Readonly<Record<string, string>>, platform: string): Stage[] {
  const [os = '', architecture = ''] = platform.split('/')
  const values: Record<string, string> = {
    TARGETPLATFORM: platform, BUILDPLATFORM: platform, TARGETOS: os, BUILDOS: os, TARGETARCH: architecture, BUILDARCH: architecture, TARGETVARIANT: '', BUILDVARIANT: ''
  }
  const stages: Stage[] = []
  for (const line of instructions(dockerfile)) {
    const [, word = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? []
    const instruction = word.toUpperCase()
    if (instruction === 'ARG' && stages.length === 0) {
      for (const [name, value] of readArguments(rest, values)) values[name] = Object.hasOwn(buildArgs, name) ? buildArgs[name] ?? '' : value
    } else if (instruction === 'FROM') {
      const words = rest.split(/\s+/).filter((each) => !each.startsWith('--'))
      stages.push({ from: expand(unquote(words[0] ?? ''), values), name: words[1]?.toUpperCase() === 'AS' ? words[2]?.toLowerCase() : undefined })
    }
  }
  return stages
}

/** Instructions with their continued lines joined; neither comments nor empty lines. */
function instructions (dockerfile: string): string[] {
  const escape = /^(?:#[^\n]*=[^\n]*\n)*#\s*escape\s*=\s*`/i.test(dockerfile) ? '`' : '\\'
  const found: string[] = []
  let open: string | undefined
  for (const raw of dockerfile.split(/\r?\n/)) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const joined: string = open === undefined ? line : `${open} ${line}`
    if (joined.endsWith(escape)) {
      open = joined.slice(0, -1).trimEnd()
    } else {
      found.push(joined)
      open = undefined
    }
  }
  return open === undefined ? found : [...found, open]
}

function readArguments (rest: string, values: Readonly<Record<string, string>>): [string, string][] {
  const words = rest.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? []
  return words.map((word) => {
    const at = word.indexOf('=')
    return at === -1 ? [word, values[word] ?? ''] : [word.slice(0, at), expand(unquote(word.slice(at + 1)), values)]
  })
}

function unquote (word: string): string {
  return word.replace(/^(["'])(.*)\1$/s, '$2')
}

/** `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+other}`. */
function expand (text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^}]*))?\})/g, (_whole, plain: string | undefined, braced: string | undefined, operator: string | undefined, word: string | undefined) => {
    const value = values[plain ?? braced ?? ''] ?? ''
    if (operator === undefined) return value
    if (operator.endsWith('+')) return value === '' ? '' : word ?? ''
    return value === '' ? word ?? '' : value
  })
}
