// Paths of builds' files. Names only; files.ts makes and removes them.
import { join } from 'node:path'

export interface BuildPaths {
  readonly folder: string
  /** the uploaded tar.gz; removed when the build is finished */
  readonly source: string
  /** the order of the build; removed with the source */
  readonly order: string
  /** the events, one JSON object per line */
  readonly log: string
}

/** Uploads that are not builds yet, each in a folder of its own. */
export const UPLOADING = 'uploading'

export function pathsIn (folder: string): BuildPaths {
  return { folder, source: join(folder, 'source.tar.gz'), order: join(folder, 'order.json'), log: join(folder, 'log') }
}
