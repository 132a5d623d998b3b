// Remembers on disk what a probe of KVM found, since a probe can take seconds: for one boot of the host, version of the VMM and kernel.
import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeFileDurably } from '../../fs/durable.ts'
import { bootId } from '../../process/identity.ts'
import { isRecord } from '../../json/is-record.ts'
import { hasCode } from '../../errors/system-code.ts'

export interface ProbeCache {
  /** The problem remembered under `key` (undefined: none); if nothing is remembered, `probe` finds it. */
  recall (key: string, probe: () => Promise<string | undefined>): Promise<string | undefined>
}

export function createProbeCache (file: string): ProbeCache {
  return {
    async recall (key, probe) {
      const fullKey = `${bootId()} ${key}`
      const known = await read(file)
      if (known?.key === fullKey) return known.problem
      const problem = await probe()
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await writeFileDurably(file, JSON.stringify({ key: fullKey, problem }) + '\n', 0o600)
      return problem
    }
  }
}

/** The content of the file. An invalid file counts as none: it is only a cache. */
async function read (file: string): Promise<{ key: string, problem: string | undefined } | undefined> {
  try {
    const content: unknown = JSON.parse(await readFile(file, 'utf8'))
    if (!isRecord(content) || typeof content['key'] !== 'string') return undefined
    return { key: content['key'], problem: typeof content['problem'] === 'string' ? content['problem'] : undefined }
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
