// The files that an installation puts outside the program's folder.
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { COMMAND, CONFIG_FOLDER, PROGRAM, SYSUSERS, TMPFILES, UNIT_FOLDER } from './places.ts'

export interface PlacedFile {
  /** path without the root */
  readonly path: string
  readonly mode: number
  readonly from: { readonly file: string } | { readonly link: string }
}

const SOURCES = join(packageRoot, 'systemd')

export async function systemFiles (): Promise<PlacedFile[]> {
  const units = (await readdir(join(SOURCES, 'units'))).sort()
  return [
    ...units.map(name => placed(join(UNIT_FOLDER, name), join(SOURCES, 'units', name))),
    placed(SYSUSERS, join(SOURCES, 'sysusers.conf')),
    placed(TMPFILES, join(SOURCES, 'tmpfiles.conf')),
    { path: COMMAND, mode: 0o777, from: { link: `${PROGRAM}/bin/berth` } }
  ]
}

/** Written once; from then on it belongs to the operator. The server's may contain the password of a database; the proxy's user reads its own. */
export function configFiles (): PlacedFile[] {
  return [
    placed(`${CONFIG_FOLDER}/berth.yaml`, join(SOURCES, 'etc/berth.yaml'), 0o600),
    placed(`${CONFIG_FOLDER}/egress.yaml`, join(SOURCES, 'etc/egress.yaml'))
  ]
}

/** Names of the units among the files. */
export function unitsOf (paths: readonly string[]): string[] {
  return paths.filter(path => path.startsWith(`${UNIT_FOLDER}/`)).map(path => basename(path))
}

function placed (path: string, file: string, mode = 0o644): PlacedFile {
  return { path, mode, from: { file } }
}
