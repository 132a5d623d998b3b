// The image of the guests that measure: busybox, and this machine's iperf3 with the libraries that it needs.
import type { OciImageSource } from '@onkernel/hypeman/lib/push'
import { busyboxImage } from '../images.ts'
import { installedProgram } from '../installed-program.ts'

export const iperf = '/usr/bin/iperf3'

/** Runs iperf3 with the words of each line that comes, and answers with its report on one line. */
const obey = '#!/bin/sh\nwhile read -r words; do iperf3 $words --json | tr -d "\\n\\t"; echo; done\n'

export async function makeIperfImage (): Promise<OciImageSource> {
  return await busyboxImage({ Env: ['PATH=/bin:/usr/bin'] }, [...await installedProgram(iperf), { path: 'bin/obey', content: obey, mode: 0o755 }])
}

/** What a guest runs that obeys whoever listens there. */
export function obeying (address: string, port: number): string[] {
  return ['/bin/sh', '-c', `PATH=/bin:/usr/bin; echo ready; until nc ${address} ${port} -e /bin/obey; do sleep 0.2; done; sleep 1000`]
}
