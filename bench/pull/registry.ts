// A plain registry on loopback, Debian's docker-registry, with an image of several layers in it.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { freePort } from '../../test/helpers/free-port.ts'

export interface TestRegistry { readonly host: string, stop (): Promise<void> }

/** Folders of the host that become layers: many small files, and some large ones. */
const sources = ['/usr/share/perl', '/usr/lib/python3', '/usr/share/doc']

/** Starts a registry that keeps its data below `folder`. */
export async function startRegistry (folder: string): Promise<TestRegistry> {
  const port = await freePort('127.0.0.1')
  const config = join(folder, 'registry.yml')
  await writeFile(config, [
    'version: 0.1', 'log:', '  level: error', 'storage:', '  filesystem:', `    rootdirectory: ${JSON.stringify(join(folder, 'registry'))}`,
    'http:', `  addr: 127.0.0.1:${port}`, ''
  ].join('\n'))
  const log = await open(join(folder, 'registry.log'), 'a')
  const child = spawn('docker-registry', ['serve', config], { cwd: folder, stdio: ['ignore', log.fd, log.fd] })
  await log.close()
  await answering(`http://127.0.0.1:${port}/v2/`, child)
  return {
    host: `127.0.0.1:${port}`,
    stop: async () => {
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill()
      await ended
    }
  }
}

/** Builds an image of several layers from folders of this host and pushes it. Resolves to its reference. */
export async function pushLayers (commands: HostCommands, folder: string, host: string): Promise<string> {
  const layout = join(folder, 'bench-image')
  const image = `${layout}:latest`
  await commands.run('umoci', ['init', '--layout', layout])
  await commands.run('umoci', ['new', '--image', image])
  for (const [index, source] of sources.entries()) {
    const layer = join(folder, `layer-${index}.tar`)
    await commands.run('tar', ['--create', '--file', layer, '--ignore-failed-read', '--directory', '/', source.slice(1)])
    await commands.run('umoci', ['raw', 'add-layer', '--image', image, layer])
  }
  const reference = `${host}/bench/layers:latest`
  await commands.run('skopeo', ['copy', '--quiet', '--dest-tls-verify=false', `oci:${image}`, `docker://${reference}`])
  return reference
}

/** Makes an empty folder, in which tools make their target themselves. */
export async function emptyFolder (path: string): Promise<string> {
  await mkdir(path, { recursive: true })
  return path
}

/** Waits until `url` answers. The registry has no signal for "ready". */
async function answering (url: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 20_000
  while (Date.now() < deadline && child.exitCode === null) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok === true) return
    await delay(50)
  }
  throw new Error('docker-registry did not answer')
}
