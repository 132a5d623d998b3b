// `npm run bench -- disk-usage`: what it costs to know the disk space of a registry with 30,000 files: the first look, and one at what has changed since.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CountedTree } from '../../plugins/resources/counted-tree.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print, series } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { costOf } from '../scale/held.ts'

const LAYERS = 14_000
const REPOSITORIES = 50
const TAGS = 650
/** by then all of it is old */
const LATER_MS = 120_000

async function diskUsage ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder) => {
    await fill(join(folder, 'registry'))
    const [first, later] = [series('the first look'), series('a look after a push of one layer')]
    for (let run = 0; run < runs; run++) {
      const tree = new CountedTree(join(folder, 'registry'), () => Date.now() + LATER_MS)
      const look = async (): Promise<void> => { await tree.bytes() }
      first.values.push((await costOf(look)).cpu)
      await putLayer(join(folder, 'registry'), LAYERS + run)
      later.values.push((await costOf(look)).cpu)
    }
    print(figureOf(`disk space of a registry with ${2 * LAYERS + 3 * TAGS} files, processor`, 'ms', later.values, { other: first }))
  })
}

/** As docker-registry lays them out: a folder for each blob, and one for each link to it. */
async function fill (folder: string): Promise<void> {
  for (let index = 0; index < LAYERS; index++) await putLayer(folder, index)
  for (let index = 0; index < TAGS; index++) {
    const manifests = join(repositoryOf(folder, index), '_manifests')
    for (const path of [`revisions/sha256/${digestOf(index)}`, `tags/v${index}/current`, `tags/v${index}/index/sha256/${digestOf(index)}`]) await put(join(manifests, path), 'link')
  }
}

async function putLayer (folder: string, index: number): Promise<void> {
  const digest = digestOf(index)
  await put(join(folder, 'blobs/sha256', digest.slice(0, 2), digest), 'data')
  await put(join(repositoryOf(folder, index), '_layers/sha256', digest), 'link')
}

async function put (folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, name), 'sha256')
}

const repositoryOf = (folder: string, index: number): string => join(folder, `repositories/team/app-${index % REPOSITORIES}`)
/** Spread over all first bytes, as digests are. */
const digestOf = (index: number): string => (Math.imul(index, 2_654_435_761) >>> 0).toString(16).padStart(8, '0').repeat(8)

export const benchmarks: Benchmarks = { 'disk-usage': diskUsage }
