// The templates on this host's disk: which there are, who uses them, and which go when there are too many.
import { chmod, lstat, mkdir, readdir, readFile, rename, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Logger } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { allocatedBytes } from '../../../core/fs/allocated-bytes.ts'
import { removeTree, renameDurably } from '../../../core/fs/durable.ts'
import { isLeftover, type TemplateFiles, type TemplatePaths } from './paths.ts'
import type { Template, TemplateFacts, TemplateUse } from './contract.ts'

export const TEMPLATE_VERSION = 3

const StoredTemplate = Type.Object({
  version: Type.Literal(TEMPLATE_VERSION),
  key: Type.String(),
  hypervisor: Type.String(),
  vcpus: Type.Integer(),
  memoryBytes: Type.Integer(),
  kernelHeaders: Type.Optional(Type.String()),
  network: Type.Object({ enabled: Type.Boolean() }),
  limitsDisks: Type.Optional(Type.Literal(true)),
  image: Type.Object({ stateBytes: Type.Integer(), memoryBytes: Type.Integer() })
})

interface Entry {
  readonly template: Template
  readonly bytes: number
  lastUsedAt: number
  users: number
  /** called when the last user of a template that is to be removed has released it */
  free: (() => void) | undefined
}

export interface TemplateStore {
  /** Removes leftovers and unreadable templates, and lists the others. */
  open (): Promise<void>
  all (): readonly Template[]
  /** the one that was used last comes first */
  facts (): ReadonlyArray<Omit<TemplateFacts, 'spares'>>
  has (key: string): boolean
  use (key: string): TemplateUse | undefined
  /** Lists a template whose files are complete in `making` and on disk. When there are too many templates now, others are removed. False when this one alone is too large; it is removed then. */
  publish (template: Template): Promise<boolean>
  remove (key: string): Promise<void>
}

export interface StoreLimits { readonly maxCount: number, readonly maxBytes: number }

export function createTemplateStore (paths: TemplatePaths, limits: StoreLimits, log: Logger): TemplateStore {
  const entries = new Map<string, Entry>()

  async function remove (key: string): Promise<void> {
    const entry = entries.get(key)
    if (entry === undefined) return
    // From here on nobody can begin to use it.
    entries.delete(key)
    if (entry.users > 0) await new Promise<void>((resolve) => { entry.free = resolve })
    await discard(paths, key)
  }

  async function evict (kept: string): Promise<void> {
    const others = [...entries.values()].filter(({ template }) => template.key !== kept).sort((a, b) => a.lastUsedAt - b.lastUsedAt)
    const isTooMuch = (): boolean => entries.size > limits.maxCount || sum(entries.values()) > limits.maxBytes
    for (const { template } of others) {
      if (!isTooMuch()) return
      log.info({ template: template.key }, 'a template goes, to make room for another one')
      await remove(template.key)
    }
    if (isTooMuch()) {
      log.warn({ template: kept, maxBytes: limits.maxBytes }, 'a template is larger than all templates may be, and is not kept')
      await remove(kept)
    }
  }

  return {
    async open () {
      await mkdir(paths.folder, { recursive: true, mode: 0o711 })
      // VMs open the root disk by its path; they cannot list the folder.
      await chmod(paths.folder, 0o711)
      for (const name of await readdir(paths.folder)) {
        if (isLeftover(name)) await removeTree(join(paths.folder, name))
        else if (join(paths.folder, name) !== paths.root) await load(paths, name, entries)
      }
    },
    all: () => [...entries.values()].map(({ template }) => template),
    facts: () => [...entries.values()].sort((a, b) => b.lastUsedAt - a.lastUsedAt).map(({ template, bytes, lastUsedAt }) => ({ template, bytes, lastUsedAt })),
    has: (key) => entries.has(key),
    use (key) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      entry.users++
      entry.lastUsedAt = Date.now()
      const files = paths.of(key)
      // The file's time outlives the server, so that the next one knows the order of use. If it cannot be written, only the order is lost.
      utimes(files.manifest, new Date(), new Date()).catch((error: unknown) => { log.debug({ err: error }, 'the use of a template could not be noted') })
      let released = false
      return {
        template: entry.template,
        files,
        release () {
          if (released) return
          released = true
          entry.users--
          if (entry.users === 0) entry.free?.()
        }
      }
    },
    async publish (template) {
      const { key } = template
      await remove(key)
      // A complete template that is not listed: a crash came right after this rename.
      await discard(paths, key)
      await renameDurably(paths.making(key).directory, paths.of(key).directory)
      entries.set(key, { template, bytes: await bytesOf(paths.of(key)), lastUsedAt: Date.now(), users: 0, free: undefined })
      await evict(key)
      return entries.has(key)
    },
    remove
  }
}

async function load (paths: TemplatePaths, key: string, entries: Map<string, Entry>): Promise<void> {
  const files = paths.of(key)
  const template = await readTemplate(files)
  if (template?.key !== key) return await discard(paths, key)
  const { mtimeMs } = await lstat(files.manifest)
  entries.set(key, { template, bytes: await bytesOf(files), lastUsedAt: mtimeMs, users: 0, free: undefined })
}

async function readTemplate (files: TemplateFiles): Promise<Template | undefined> {
  try {
    const content: unknown = JSON.parse(await readFile(files.manifest, 'utf8'))
    return isTemplate(content) ? content : undefined
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

// The driver checks the parts that only it understands, when it restores a VM.
function isTemplate (content: unknown): content is Template {
  return Value.Check(StoredTemplate, content)
}

/** Renames the folder in one step, so that half a template never looks like a whole one. */
async function discard (paths: TemplatePaths, key: string): Promise<void> {
  await removeTree(paths.trash(key))
  try {
    await rename(paths.of(key).directory, paths.trash(key))
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  await removeTree(paths.trash(key))
}

async function bytesOf (files: TemplateFiles): Promise<number> {
  const sizes = await Promise.all([files.memory, files.state].map(allocatedBytes))
  return sizes.reduce((total, size) => total + size, 0)
}

function sum (entries: Iterable<Entry>): number {
  let total = 0
  for (const { bytes } of entries) total += bytes
  return total
}
