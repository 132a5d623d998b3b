// The finished systems on disk, `<folder>/<version>/{vmlinux,initrd,recipe.json}`: a folder with a version's name is always complete.
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import { renameDurably, syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { readRecipe, RECIPE_FILE, sameRecipe, type Recipe } from './recipe.ts'

export const BUILD_PREFIX = '.build-'
export const KERNEL_FILE = 'vmlinux'
export const INITRD_FILE = 'initrd'

export interface SystemStore {
  /** Removes the leftovers of killed builds. Only while no build runs. */
  clean (): Promise<void>
  /** The version that was made by this recipe. */
  find (recipe: Recipe): Promise<string | undefined>
  /** The version made last by a recipe that `fits`. */
  findNewest (fits: (recipe: Recipe) => boolean): Promise<string | undefined>
  /** Runs `build` in a new folder, which becomes the system of the version that it returns. */
  add (recipe: Recipe, build: (folder: string, scratch: string) => Promise<string>): Promise<string>
  path (version: string, file: string): string
  /** What a version was made of; undefined when there is none of that name. */
  recipeOf (version: string): Promise<Recipe | undefined>
}

export function createSystemStore (folder: string): SystemStore {
  const list = async (): Promise<string[]> => {
    await mkdir(folder, { recursive: true })
    return await readdir(folder)
  }
  const recipeOf = async (version: string): Promise<Recipe | undefined> => {
    try {
      return readRecipe(await readFile(join(folder, version, RECIPE_FILE), 'utf8'))
    } catch (error) {
      // not a system: the package cache, or a file of the operator
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
      throw error
    }
  }
  const findNewest = async (fits: (recipe: Recipe) => boolean): Promise<string | undefined> => {
    let newest: { readonly version: string, readonly at: number } | undefined
    for (const version of await list()) {
      if (version.startsWith('.')) continue
      const recipe = await recipeOf(version)
      if (recipe === undefined || !fits(recipe)) continue
      const at = (await stat(join(folder, version))).mtimeMs
      if (newest === undefined || at > newest.at) newest = { version, at }
    }
    return newest?.version
  }
  return {
    findNewest,
    recipeOf,
    find: (recipe) => findNewest((made) => sameRecipe(made, recipe)),
    path: (version, file) => join(folder, version, file),
    async clean () {
      for (const name of await list()) {
        if (name.startsWith(BUILD_PREFIX)) await rm(join(folder, name), { recursive: true, force: true })
      }
    },
    async add (recipe, build) {
      await mkdir(folder, { recursive: true })
      const work = await mkdtemp(join(folder, BUILD_PREFIX))
      try {
        const result = join(work, 'system')
        const scratch = join(work, 'scratch')
        await mkdir(result)
        await mkdir(scratch)
        const version = await build(result, scratch)
        await writeFile(join(result, RECIPE_FILE), `${JSON.stringify(recipe)}\n`)
        for (const name of await readdir(result)) await syncFile(join(result, name))
        await syncFolder(result)
        await publish(result, join(folder, version))
        return version
      } finally {
        await rm(work, { recursive: true, force: true })
      }
    }
  }
}

async function publish (result: string, target: string): Promise<void> {
  try {
    await renameDurably(result, target)
  } catch (error) {
    // The same version exists already and is complete: versions are hashes of the content. But another recipe may have led to it, by which it would not be found.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
    await renameDurably(join(result, RECIPE_FILE), join(target, RECIPE_FILE))
  }
}
