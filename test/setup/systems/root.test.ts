// Why a system cannot be tried on a host, without making one: what the host's programs answer is the test's.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { whyNot } from '../../../setup/systems/root.ts'
import { testFolder } from '../../helpers/folder.ts'

const skip = process.getuid?.() !== 0
  ? 'only root makes systems'
  : existsSync('/usr/sbin/debootstrap') ? false : 'debootstrap is not installed'

/** A host whose programs print this; one that is not among them fails. */
function host (answers: Readonly<Record<string, string>>): HostCommands {
  return {
    run: async (file) => {
      const stdout = answers[file.slice(file.lastIndexOf('/') + 1)]
      if (stdout === undefined) throw new Error(`no ${file} here`)
      return { stdout, stderr: '' }
    }
  }
}

t.test('what is missing is told in one line', { skip }, async (t) => {
  process.env['BERTH_SYSTEMS_CACHE'] = testFolder(t)
  const apt = { unshare: '', 'apt-get': 'Debian-Security main http://security.test/\nDebian main http://archive.test/debian/\n', 'apt-config': 'Acquire::http::Proxy "http://proxy.test";\n' }
  t.match(await whyNot(host({}), 'trixie'), /unshare --mount --pid, or mount -t overlay, does not work here$/)
  t.match(await whyNot(host({ unshare: '' }), 'trixie'), /^apt knows no archive of Debian here/, 'no apt')
  t.match(await whyNot(host({ ...apt, 'apt-get': 'Ubuntu main http://archive.test/ubuntu/\n' }), 'trixie'), /^apt knows no archive of Debian here/)
  t.equal(await whyNot(host(apt), 'testing'), 'apt cannot reach testing in its archive of Debian from here')
  t.equal(await whyNot(host({ ...apt, 'apt-helper': '' }), 'trixie'), undefined)
})

t.test('a system that was made before needs no archive', { skip }, async (t) => {
  const cache = testFolder(t)
  process.env['BERTH_SYSTEMS_CACHE'] = cache
  await mkdir(join(cache, 'trixie'))
  t.equal(await whyNot(host({ unshare: '' }), 'trixie'), undefined)
  t.match(await whyNot(host({}), 'trixie'), /unshare/)
})
