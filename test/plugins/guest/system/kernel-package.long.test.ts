// What is read from apt, and what a caller is told when apt fails.
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { HostCommands } from '../../../../core/contracts/services.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { downloadPackage, readPackageRecord, resolvePackage, unpackKernel } from '../../../../plugins/guest/system/kernel-package.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()

t.test('a metapackage stands for the kernel that it depends on', async (t) => {
  const meta = 'Package: linux-image-cloud-amd64\nVersion: 6.1.192-2\nDepends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2), other (= 1)\n'
  t.same(readPackageRecord(meta), { name: 'linux-image-6.1.0-56-cloud-amd64', version: '6.1.192-2' })
  const own = 'Package: linux-image-6.1.0-56-cloud-amd64\nVersion: 6.1.192-2\nDepends: kmod, linux-base (>= 4.3~)\n'
  t.same(readPackageRecord(own), { name: 'linux-image-6.1.0-56-cloud-amd64', version: '6.1.192-2' })
  t.equal(readPackageRecord(''), undefined)
})

t.test('the default package is resolved by the host\'s apt', async (t) => {
  const found = await resolvePackage(commands, 'linux-image-cloud-amd64')
  t.match(found, { name: /^linux-image-[\d.]+-.*cloud-amd64$/, version: /^\d/ })
})

t.test('a package that does not exist is said to, after a look at fresh lists', async (t) => {
  const ran: string[] = []
  const watched: HostCommands = {
    run (file, args, options) {
      ran.push([file, ...args].join(' '))
      // the lists are fetched once by whoever sets the machine up; here only the order of commands matters
      return args.includes('update') ? Promise.resolve({ stdout: '', stderr: '' }) : commands.run(file, args, options)
    }
  }
  await t.rejects(resolvePackage(watched, 'linux-image-none'), { code: 'kernel_package_unknown', message: /linux-image-none/ })
  t.same(ran, ['apt-cache show --no-all-versions linux-image-none', 'apt-get -q update', 'apt-cache show --no-all-versions linux-image-none'])
})

t.test('a file in the cache is used, also under a version with an epoch', async (t) => {
  const cache = testFolder(t, { 'linux-image-x_1%3a2-3_amd64.deb': 'x' })
  t.equal(await downloadPackage(commands, { name: 'linux-image-x', version: '1:2-3' }, cache), join(cache, 'linux-image-x_1%3a2-3_amd64.deb'))
})

t.test('a download that fails says what apt says and leaves nothing', async (t) => {
  const cache = testFolder(t)
  const old = join(cache, '.download-crashed')
  await mkdir(old)
  await writeFile(join(old, 'half.deb'), '')
  await utimes(old, 1, 1)
  await t.rejects(downloadPackage(commands, { name: 'linux-image-none', version: '0' }, cache), { code: 'kernel_unavailable', message: /apt-get .*download linux-image-none=0 failed: E: .*linux-image-none/ })
  t.same(await readdir(cache), [])
})

t.test('a damaged package is not unpacked', async (t) => {
  const folder = testFolder(t, { 'x.deb': 'no archive' })
  await t.rejects(unpackKernel(commands, [join(folder, 'x.deb')], join(folder, 'out')), { code: 'host_command_failed' })
})
