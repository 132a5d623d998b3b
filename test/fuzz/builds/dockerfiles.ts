// Dockerfiles as a build's source may hold them, and what a build prints: the base images of a known one are found however it is written, and none keeps the server from others.
import { BerthError } from '../../../core/errors/define.ts'
import { baseImages, type BaseImages } from '../../../plugins/builds/builder-vm/base-images.ts'
import { createLines } from '../../../plugins/builds/builder-vm/lines.ts'
import type { Fuzz, Random } from '../fuzz.ts'
import { hostileDockerfile, knownDockerfile } from '../helpers/dockerfile-text.ts'
import { Hold } from '../helpers/hold.ts'

/** what a Dockerfile may have */
const LONGEST = 2 ** 20
const MAX_LINE = 64 * 1024
const SHOWN = 2_000

interface Case { readonly input: string, readonly run: () => string | undefined }

function read (text: string, args: Readonly<Record<string, string>>, target: string | undefined): BaseImages | undefined {
  try {
    return baseImages(text, args, target, 'linux/amd64')
  } catch (error) {
    if (error instanceof BerthError) return undefined
    throw error
  }
}

function known (random: Random): Case {
  const { text, all, main } = knownDockerfile(random)
  const wanted = JSON.stringify({ all, main })
  return { input: text, run: () => { const found = JSON.stringify(read(text, {}, undefined)); return found === wanted ? undefined : `found ${found} instead of ${wanted}` } }
}

function hostile (random: Random): Case {
  const text = hostileDockerfile(random, LONGEST)
  const args: Record<string, string> = random.once(2) ? {} : { A: random.pick(['', 'x', '$A', '${A}', 'x'.repeat(600)]) }
  const target = random.once(3) ? undefined : random.pick(['0', '99999999999999999999', '__proto__', ''])
  const run = (): string | undefined => {
    const found = read(text, args, target)
    if (found === undefined) return undefined
    if (new Set(found.all).size !== found.all.length || found.all.includes('scratch')) return `the bases are ${JSON.stringify(found.all).slice(0, SHOWN)}`
    return found.main === undefined || found.all.includes(found.main) ? undefined : `the main base is ${found.main}, which is none of the bases`
  }
  return { input: `${JSON.stringify({ args, target })} ${text}`, run }
}

const OUTPUT = ['\x1b[', '\x1b]', '\x1b', '\x07', '1;', 'm', '\r', '\n', '\r\n', ' ', 'text', '\u0000', '\u009b', '\u2028', '€', '😀', '\x1b\\', '\b'] as const

function linesOf (pieces: readonly Buffer[]): string[] {
  const found: string[] = []
  const lines = createLines(line => found.push(line))
  for (const piece of pieces) lines.push(piece)
  lines.end()
  return found
}

/** Output is the same however it comes in pieces, and holds nothing that moves a cursor. */
function output (random: Random): Case {
  const parts = random.many(30, () => random.pick(OUTPUT))
  const isLong = random.once(15)
  const text = isLong ? (parts.join('') || 'x').repeat(LONGEST / 16).slice(0, LONGEST) : parts.join('')
  const bytes = random.mutate(Buffer.from(text), isLong ? 0 : 2)
  const pieces = random.pieces(bytes)
  const run = (): string | undefined => {
    const found = linesOf(pieces)
    const bad = found.find(line => line.length > MAX_LINE || /\p{Cc}|[\u2028\u2029]/u.test(line.replaceAll('\t', '')))
    if (bad !== undefined) return `gives a line ${JSON.stringify(bad.slice(0, SHOWN))} of ${bad.length} characters`
    return isLong || JSON.stringify(found) === JSON.stringify(linesOf([bytes])) ? undefined : `in pieces it reads ${JSON.stringify(found)}, in one ${JSON.stringify(linesOf([bytes]))}`
  }
  return { input: JSON.stringify(pieces.map(piece => piece.toString('latin1'))), run }
}

export const fuzz: Fuzz = {
  seeds: [],
  async start () {
    const hold = new Hold()
    return async random => {
      const { input, run } = random.pick([known, hostile, output])(random)
      hold.begin()
      const fault = run() ?? hold.fault()
      return { input: input.slice(0, SHOWN), ...fault === undefined ? {} : { fault } }
    }
  }
}
