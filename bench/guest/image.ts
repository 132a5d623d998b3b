// The image that the benchmarks of memory images boot: busybox, and the program `bench-guest`, which is compiled when it is needed, and for an emulated host before it boots.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pushFromURL, type OciImageSource } from '@onkernel/hypeman/lib/push'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import { busyboxImage } from '../../test/helpers/images.ts'
import { isEmulatedHost } from '../../test/emulated-host/slow.ts'

/** the path of the program in the image */
export const guestProgram = '/bin/bench-guest'

/** Compiles the program in `folder` and returns its path. */
export async function compileGuestProgram (commands: HostCommands, folder: string): Promise<string> {
  const program = join(folder, 'bench-guest')
  await commands.run('cc', ['-static', '-O2', '-Wall', '-Wextra', '-Werror', '-o', program, join(packageRoot, 'bench/guest/bench-guest.c')])
  return program
}

/** @param folder for the program */
export async function makeGuestImage (commands: HostCommands, folder: string): Promise<OciImageSource> {
  const program = isEmulatedHost ? '/run/data/bench-guest' : await compileGuestProgram(commands, folder)
  return await busyboxImage({}, [{ path: guestProgram.slice(1), content: await readFile(program), mode: 0o755 }])
}

/** Pushes the image to a server's own registry and returns its name there. The first create waits until it can be booted. */
export async function pushGuestImage (server: { readonly url: string, readonly key: string }, image: OciImageSource): Promise<string> {
  await pushFromURL(server.url, server.key, image, 'bench/guest:latest')
  return `${new URL(server.url).host}/bench/guest:latest`
}
