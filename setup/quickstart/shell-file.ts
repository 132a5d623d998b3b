// A file to source in a shell: it defines the command `berth` of this checkout, for a server that quickstart left running.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'

/** Writes it into the server's folder, readable by this user only, since it contains the key; returns its path. */
export async function writeShellFile (folder: string, { url, key }: { readonly url: string, readonly key: string }): Promise<string> {
  const file = join(folder, 'env')
  const quoted = (text: string): string => `'${text.replaceAll('\'', '\'\\\'\'')}'`
  const command = join(packageRoot, 'dist/cli/main.js')
  await writeFile(file, `export BERTH_URL=${quoted(url)} BERTH_TOKEN=${quoted(key)}\nberth () { node ${quoted(command)} "$@"; }\n`, { mode: 0o600 })
  return file
}
