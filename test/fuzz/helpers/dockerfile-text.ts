// Dockerfiles: ones whose base images are known, written in any of the ways that mean the same, and texts that are nearly one.
import type { Random } from '../fuzz.ts'

export interface KnownDockerfile {
  readonly text: string
  readonly all: readonly string[]
  readonly main: string | undefined
}

const IMAGES = ['alpine', 'debian:12', 'localhost:8080/a/b:1', 'docker.io/library/golang', 'x@sha256:00', 'scratch'] as const

/** As many lines between two words as a Dockerfile may have there. */
function gap (random: Random, escape: string): string {
  const way = random.below(8)
  if (way < 4) return ' '
  if (way === 4) return '\t  '
  if (way === 5) return ` ${escape}\n `
  if (way === 6) return ` ${escape}\r\n# FROM comment\n\n  `
  return ` ${escape}\n# ${escape}\n`
}

function noise (random: Random): string {
  return random.many(2, () => random.pick(['\n', '\r\n', '# FROM none\n', '  # a = b\n', '#\n'])).join('')
}

const anyCase = (random: Random, word: string): string => random.once(3) ? word.toLowerCase() : random.once(4) ? word.charAt(0) + word.slice(1).toLowerCase() : word

/** One stage's image, perhaps by way of an argument. */
function written (random: Random, image: string, declare: (line: string) => void): string {
  const way = random.below(7)
  if (way < 3) return image
  const name = `A${random.below(1_000_000)}`
  if (way === 3) return `\${${name}:-${image}}`
  if (way === 4) return `"${image}"`
  const quote = random.pick(['', '"', "'"])
  declare(`${name}=${quote}${image}${quote}`)
  return way === 5 ? `$${name}` : random.pick([`\${${name}}`, `\${${name}:-other}`, `\${${name}-other}`])
}

export function knownDockerfile (random: Random): KnownDockerfile {
  const escape = random.once(4) ? '`' : '\\'
  const args: string[] = []
  const roots: string[] = []
  const names: string[] = []
  const all: string[] = []
  const lines: string[] = []
  for (let count = 1 + random.below(6); count > 0; count--) {
    const earlier = roots.length > 0 && random.once(3) ? random.below(roots.length) : undefined
    const image = earlier === undefined ? random.pick(IMAGES) : random.once(2) ? String(earlier) : names[earlier] ?? ''
    if (earlier === undefined && image !== 'scratch' && !all.includes(image)) all.push(image)
    const name = `Stage-${roots.length}`
    roots.push(earlier === undefined ? image : roots[earlier] ?? '')
    names.push(random.once(2) ? name : name.toLowerCase())
    const space = (): string => gap(random, escape)
    const platform = random.once(4) ? `${space()}--platform=$BUILDPLATFORM` : ''
    lines.push(`${anyCase(random, 'FROM')}${platform}${space()}${written(random, image, line => args.push(line))}${space()}${anyCase(random, 'AS')}${space()}${name}\n`)
    lines.push(...random.many(3, () => `${random.pick(['RUN echo x', 'COPY --from=none a b', 'ARG A1=none', 'ENV FROM=none', `RUN a ${escape}\n  FROM none`])}\n`))
  }
  const head = escape === '`' ? '# escape=`\n' : random.once(4) ? '# syntax=docker/dockerfile:1\n# escape=\\\n' : ''
  const text = head + args.map(line => `${noise(random)}${anyCase(random, 'ARG')}${gap(random, escape)}${line}\n`).join('') + lines.map(line => noise(random) + line).join('')
  const root = roots.at(-1)
  return { text, all, main: root === 'scratch' ? all[0] : root }
}

const PIECES = ['FROM ', 'ARG ', ' AS ', 'from', '# escape=`', '# escape=\\', '#', '=', '\\\n', '`\n', '\n', '\r', '\r\n', ' ', '\t', '"', "'", '$', '${', '}', ':-', ':+', '${A}', '$A', 'A=', 'A', '--', '0',
  'scratch', '__proto__', 'constructor', '\0', '\ufeff', '\u2028', '\u00a0', '\ud800', '<<EOF\n'] as const

/** A text that is none, and sometimes as long as one may be. */
export function hostileDockerfile (random: Random, longest: number): string {
  const parts = random.many(40, () => random.pick(PIECES))
  if (!random.once(12)) return parts.join('')
  const one = parts.slice(0, 1 + random.below(6)).join('') || ' '
  return (random.once(2) ? 'FROM ' : '') + one.repeat(Math.ceil(longest / one.length)).slice(0, longest - 5)
}
