// Makes and removes the folders of builds.
//
// An upload has a folder among the uploads. When its row is stored it is a build, and the folder moves. After a kill in between, the next server finds a row whose folder
// is still among the uploads, and moves it; it removes every other upload there.
import { chmod, mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { removeTree, syncFolder, writeFileDurably } from '../../core/fs/durable.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { pathsIn, UPLOADING, type BuildPaths } from './paths.ts'
import type { BuildOrder } from './record.ts'

export class BuildFiles {
  readonly folder: string

  constructor (dataDir: string) {
    this.folder = join(dataDir, 'builds')
  }

  async prepare (): Promise<void> {
    for (const path of [this.folder, join(this.folder, UPLOADING)]) {
      await mkdir(path, { recursive: true, mode: 0o700 })
      await chmod(path, 0o700)
    }
  }

  of (id: string): BuildPaths { return pathsIn(join(this.folder, id)) }

  upload (id: string): BuildPaths { return pathsIn(join(this.folder, UPLOADING, id)) }

  async beginUpload (id: string): Promise<BuildPaths> {
    const paths = this.upload(id)
    await mkdir(paths.folder, { mode: 0o700 })
    return paths
  }

  async writeOrder (paths: BuildPaths, order: BuildOrder): Promise<void> {
    await writeFileDurably(paths.order, JSON.stringify(order), 0o600)
  }

  async readOrder (id: string): Promise<BuildOrder> {
    return JSON.parse(await readFile(this.of(id).order, 'utf8'))
  }

  async dropUpload (id: string): Promise<void> {
    await removeTree(this.upload(id).folder)
  }

  /** Moves the folder of an upload that has become a build. Idempotent. */
  async admit (id: string): Promise<void> {
    try {
      await rename(this.upload(id).folder, this.of(id).folder)
    } catch (error) {
      if (!hasCode(error, 'ENOENT') || !await isThere(this.of(id).folder)) throw error
    }
    await syncFolder(this.folder)
  }

  /** Makes a folder for the log of a build whose own was lost. */
  async ensure (id: string): Promise<void> {
    await mkdir(this.of(id).folder, { recursive: true, mode: 0o700 })
  }

  /** Removes the files that only an unfinished build needs. */
  async dropSource (id: string): Promise<void> {
    await removeTree(this.of(id).source)
    await removeTree(this.of(id).order)
  }

  async remove (id: string): Promise<void> {
    await removeTree(this.of(id).folder)
  }

  /** Removes uploads that no server is receiving any more. */
  async clearUploads (): Promise<void> {
    for (const name of await readdir(join(this.folder, UPLOADING))) await removeTree(join(this.folder, UPLOADING, name))
  }

  /** Names in the folder that belong to none of these builds. */
  async strangers (ids: ReadonlySet<string>): Promise<string[]> {
    return (await readdir(this.folder)).filter((name) => name !== UPLOADING && !ids.has(name))
  }
}
