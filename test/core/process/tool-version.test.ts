// What is said of a tool that is older than any that was tried.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { hostPackages } from '../../../setup/host-packages.ts'
import { checkTool, tooOld } from '../../../core/process/tool-version.ts'
import { testFolder } from '../../helpers/folder.ts'

const packages = await hostPackages()

t.test('a tool that is too old is one line with its package, whatever words are around its version', async (t) => {
  t.equal(tooOld('qemu-system-x86_64', 'QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6.26)', packages),
    'qemu-system-x86_64 6.2.0 is older than 7.2.0, the oldest that was tried; install a later version of the package qemu-system-x86')
  for (const [file, said, name] of [
    ['/usr/sbin/nft', 'nftables v0.9.8 (E.D.S.)', 'nftables'],
    ['ip', 'ip utility, iproute2-5.10.0, libbpf 0.3.0', 'iproute2'],
    ['dnsmasq', 'Dnsmasq version 2.85  Copyright (c) 2000-2021 Simon Kelley', 'dnsmasq-base'],
    ['skopeo', 'skopeo version 1.2.2', 'skopeo'],
    ['umoci', 'umoci version 0.4.6', 'umoci'],
    ['docker-registry', 'docker-registry github.com/docker/distribution 2.7.1', 'docker-registry']
  ] as const) t.match(tooOld(file, said, packages), new RegExp(`^${file} [0-9.]+ is older than .* the package ${name}$`))
})

t.test('one that is as old or later is fine, and so is one that says nothing that can be compared', async (t) => {
  for (const [file, said] of [
    ['skopeo', 'skopeo version 1.9.3'], ['skopeo', 'skopeo version 1.18.0'], ['skopeo', 'skopeo version 2.0'], ['skopeo', 'skopeo version 1.10.0-dev'], ['skopeo', ''],
    ['ip', 'ip utility, iproute2-6.15.0'], ['qemu-system-x86_64', 'QEMU emulator version 11.1.2'], ['qemu-system-x86_64', 'QEMU emulator version 7.2.22'], ['sysctl', 'sysctl from procps-ng 3.0']
  ] as const) t.equal(tooOld(file, said, packages), undefined, said)
})

t.test('a tool is asked for its version as its package says, and heard wherever it answers', async (t) => {
  const warned: string[] = []
  const how = { commands: createHostCommands(), log: { warn: (...args: unknown[]) => { warned.push(String(args.at(-1))) } } }
  const folder = testFolder(t)
  for (const [name, stream] of [['out', 1], ['err', 2]] as const) {
    const file = join(folder, name)
    await writeFile(file, `#!/bin/sh\n[ "$1" = -v ] && echo 'nginx version: nginx/1.18.0' >&${stream}\n`, { mode: 0o755 })
    await checkTool(file, { ...how, tool: 'nginx', packages })
  }
  t.same(warned, Array.from({ length: 2 }, () => 'nginx 1.18.0 is older than 1.22.1, the oldest that was tried; install a later version of the package nginx'))
})

t.test('the tools of this host are none of those', async (t) => {
  for (const [file, option] of [['skopeo', '--version'], ['umoci', '--version'], ['docker-registry', '--version'], ['qemu-system-x86_64', '--version']] as const) {
    t.equal(tooOld(file, (await createHostCommands().run(file, [option])).stdout, packages), undefined, file)
  }
})
