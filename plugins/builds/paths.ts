// Where the files of builds stand. Names only; files.ts makes and removes them.
import { join } from 'node:path'

export interface BuildPaths {
  readonly folder: string
  /** the uploaded tar.gz; gone when the build is over */
  readonly source: string
  /** what was asked; gone with the source */
  readonly order: string
  /** the events, one JSON object per line */
  readonly log: string
}

/** Uploads that are no builds yet, each in a folder of its own. */
export const UPLOADING = 'uploading'

export function pathsIn (folder: string): BuildPaths {
  return { folder, source: join(folder, 'source.tar.gz'), order: join(folder, 'order.json'), log: join(folder, 'log') }
}
