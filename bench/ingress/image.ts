// The image of the program that is called: this machine's nginx, with a small answer and a large one.
import type { OciImageSource } from '@onkernel/hypeman/lib/push'
import { busyboxImage } from '../../test/helpers/images.ts'
import { installedProgram } from '../../test/helpers/installed-program.ts'
import { firstLine } from '../berth.ts'

export const guestPort = 8080
export const largeBytes = 1024 ** 3

const config = `daemon off;
user root;
pid /tmp/pid;
error_log stderr;
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  server { listen ${guestPort}; root /srv; }
}
`

/** The large answer takes no space: it is a hole. */
export const guestArgv = ['/bin/sh', '-c', `truncate -s ${largeBytes} /srv/large; echo ${firstLine}; exec /usr/sbin/nginx -c /srv/nginx.conf`]

export async function makeWebImage (): Promise<OciImageSource> {
  return await busyboxImage({ Env: ['PATH=/bin:/usr/sbin'] }, [
    ...await installedProgram('/usr/sbin/nginx'),
    ...['srv', 'var', 'var/log', 'var/log/nginx', 'var/lib', 'var/lib/nginx'].map((path) => ({ path, type: 'dir' as const })),
    { path: 'srv/nginx.conf', content: config },
    { path: 'srv/small', content: 'x'.repeat(100) }
  ])
}
