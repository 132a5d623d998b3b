// Ends what plugins that are turned off now have left running. A built-in plugin that may leave something has a file `turned-off.js` beside its `index.js`; of a plugin that is off, only that file is imported.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMapping } from '../config/json-schema.ts'
import type { HostCommands, Logger } from '../contracts/services.ts'

/** What such a file may use: it gets no services. */
export interface TurnedOffHost {
  readonly dataDir: string
  readonly commands: HostCommands
  readonly log: Logger
}

/** The export `endLeftovers` of such a file. Idempotent, and fast where nothing was left. */
export type EndLeftovers = (host: TurnedOffHost) => Promise<void>

const FILE = 'turned-off.js'

/** @param indexes the `index.js` of each. @returns the files of those that have one, by id */
export function findTurnedOff (indexes: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...indexes].map(([id, index]): [string, string] => [id, join(dirname(index), FILE)]).filter(([, file]) => existsSync(file)))
}

/** Never rejects: a failure for one plugin does not prevent the others, nor the server's start. */
export async function endAllLeftovers (files: ReadonlyMap<string, string>, host: TurnedOffHost): Promise<void> {
  for (const [id, file] of files) {
    try {
      const module: unknown = await import(pathToFileURL(file).href)
      const end = isMapping(module) ? module['endLeftovers'] : undefined
      if (typeof end !== 'function') throw new Error(`${file} does not export "endLeftovers"`)
      await end(host)
    } catch (error) {
      host.log.error({ err: error, plugin: id }, 'what a plugin has left that is turned off could not be ended')
    }
  }
}
