// Certificates for loopback, made by openssl: an authority, and pairs of files that it signed.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../../core/process/run.ts'

const openssl = async (...args: string[]): Promise<unknown> => await createHostCommands().run('openssl', args)

export interface TestAuthority {
  /** file of its certificate */
  readonly file: string
  /** Makes `NAME.pem` and `NAME.key` (mode 0600). @param names that it is for, as `DNS:shop.test`; without them for the loopback */
  issue (name: string, names?: readonly string[]): Promise<{ readonly certificate: string, readonly key: string }>
}

export async function makeAuthority (folder: string): Promise<TestAuthority> {
  const path = (name: string): string => join(folder, name)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  await openssl('req', '-x509', ...key, '-days', '30', '-subj', '/CN=tests', '-keyout', path('ca.key'), '-out', path('ca.pem'))
  return {
    file: path('ca.pem'),
    async issue (name, names = ['IP:127.0.0.1']) {
      const extensions = path(`${name}.ext`)
      await writeFile(extensions, `subjectAltName=${names.join(',')}\n`)
      await openssl('req', ...key, '-subj', `/CN=${name}`, '-keyout', path(`${name}.key`), '-out', path(`${name}.csr`))
      await openssl('x509', '-req', '-in', path(`${name}.csr`), '-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial', '-days', '10', '-extfile', extensions, '-out', path(`${name}.pem`))
      return { certificate: path(`${name}.pem`), key: path(`${name}.key`) }
    }
  }
}

/** Puts content there in one step, as those who renew certificates do. */
export async function replaceFile (path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${path}.new`, content, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
