// Remembers on disk that a trial of KVM succeeded, since it can take seconds: for one boot of the host, version of the VMM and kernel. A failure is not kept there: the host may have been busy.
import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeFileDurably } from '../../fs/durable.ts'
import { bootId } from '../../process/identity.ts'
import { isRecord } from '../../json/is-record.ts'
import { hasCode } from '../../errors/system-code.ts'

export interface ProbeCache {
  /** Undefined, for no problem, when that is remembered under `key`; else what `probe` finds. */
  recall (key: string, probe: () => Promise<string | undefined>): Promise<string | undefined>
}

export function createProbeCache (file: string): ProbeCache {
  return {
    async recall (key, probe) {
      const fullKey = `${bootId()} ${key}`
      if (await read(file) === fullKey) return undefined
      const problem = await probe()
      if (problem !== undefined) return problem
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await writeFileDurably(file, JSON.stringify({ key: fullKey }) + '\n', 0o600)
      return undefined
    }
  }
}

/** The key in the file. An invalid file counts as none: it is only a cache; so does a problem, which servers kept before. */
async function read (file: string): Promise<string | undefined> {
  try {
    const content: unknown = JSON.parse(await readFile(file, 'utf8'))
    return isRecord(content) && typeof content['key'] === 'string' && content['problem'] === undefined ? content['key'] : undefined
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
