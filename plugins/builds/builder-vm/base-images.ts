// Finds a Dockerfile's base images. Parses only what that needs: directives, continued lines, the arguments before the first stage, and FROM.
// Our own parser, since libraries for this are made for editors: dockerfile-ast took over a second for the worst 256 KiB, and does not expand arguments.
import { BuildFailed } from '../errors.ts'
import { createExpansion, instructions, unquote, words, type Expansion } from './dockerfile-text.ts'

const MAX_STAGES = 1000
/** of an image's name */
const MAX_NAME = 512

/** A stage, with its base image. */
interface Stage {
  /** as it is written */
  readonly from: string
  /** whether `from` is an earlier stage */
  readonly isOfStage: boolean
  readonly root: string
}

export interface BaseImages {
  /** as they are written, each once, without stages and `scratch` */
  readonly all: readonly string[]
  /** the base image of the last stage, or of the requested one; when that is `scratch`, the first of all */
  readonly main: string | undefined
}

/**
 * @param platform the value of the predefined arguments, such as `linux/amd64`
 * @throws build_failed that names the limit which the Dockerfile exceeds
 */
export function baseImages (dockerfile: string, buildArgs: Readonly<Record<string, string>>, target: string | undefined, platform: string): BaseImages {
  const stages = readStages(dockerfile, buildArgs, platform)
  const all = [...new Set(stages.list.filter((stage) => !stage.isOfStage && stage.from !== 'scratch').map((stage) => stage.from))]
  const root = (target === undefined ? stages.list.at(-1) : stages.find(target))?.root
  return { all, main: root === undefined || root === 'scratch' ? all[0] : root }
}

class Stages {
  readonly list: Stage[] = []
  readonly #byName = new Map<string, Stage>()

  add (from: string, name: string | undefined): void {
    if (this.list.length === MAX_STAGES) throw BuildFailed(`dockerfile: has more than ${MAX_STAGES} stages`)
    const before = this.find(from)
    const stage = { from, isOfStage: before !== undefined, root: before?.root ?? from }
    this.list.push(stage)
    if (name !== undefined) this.#byName.set(name.toLowerCase(), stage)
  }

  /** The earlier stage with this name or number; of several with one name the last. */
  find (name: string): Stage | undefined {
    return this.#byName.get(name.toLowerCase()) ?? (/^\d+$/.test(name) ? this.list[Number(name)] : undefined)
  }
}

function readStages (dockerfile: string, buildArgs: Readonly<Record<string, string>>, platform: string): Stages {
  const values = predefined(platform)
  const expansion = createExpansion()
  const stages = new Stages()
  for (const line of instructions(dockerfile)) {
    const end = line.search(/\s/)
    const instruction = (end === -1 ? line : line.slice(0, end)).toUpperCase()
    const rest = end === -1 ? '' : line.slice(end)
    if (instruction === 'ARG' && stages.list.length === 0) {
      declare(rest, buildArgs, values, expansion)
    } else if (instruction === 'FROM') {
      const [image = '', as, name] = rest.split(/\s/).filter((each) => each !== '' && !each.startsWith('--'))
      const from = expansion.expand(unquote(image), values)
      if (from.length > MAX_NAME) throw BuildFailed(`dockerfile: the image of stage ${stages.list.length} has a name of more than ${MAX_NAME} characters`)
      stages.add(from, as?.toUpperCase() === 'AS' ? name : undefined)
    }
  }
  return stages
}

function predefined (platform: string): Map<string, string> {
  const [os = '', architecture = ''] = platform.split('/')
  return new Map(['TARGET', 'BUILD'].flatMap((prefix) => [[`${prefix}PLATFORM`, platform], [`${prefix}OS`, os], [`${prefix}ARCH`, architecture], [`${prefix}VARIANT`, '']]))
}

/** The arguments of one ARG. All values are expanded before any of the new arguments is set. */
function declare (rest: string, buildArgs: Readonly<Record<string, string>>, values: Map<string, string>, { expand }: Expansion): void {
  const declared = words(rest).map((word): [string, string] => {
    const at = word.indexOf('=')
    return at === -1 ? [word, values.get(word) ?? ''] : [word.slice(0, at), expand(unquote(word.slice(at + 1)), values)]
  })
  for (const [name, value] of declared) values.set(name, Object.hasOwn(buildArgs, name) ? buildArgs[name] ?? '' : value)
}
