// The other side: an nginx that only passes requests on, in the guests' network and on an inherited socket of the host, like the ingress.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openListeners } from '../../plugins/ingress/process/listeners.ts'

export interface BareOptions {
  readonly folder: string
  /** path of the network namespace */
  readonly namespace: string
  readonly port: number
  /** `address:port` of the program */
  readonly target: string
}

export async function startBareNginx ({ folder, namespace, port, target }: BareOptions): Promise<{ end (): Promise<void> }> {
  await writeFile(join(folder, 'bare.conf'), `daemon off;
master_process on;
user root;
pid ${folder}/pid;
error_log stderr warn;
worker_processes 2;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://${target}; }
  }
}
`)
  const listeners = await openListeners({ address: '127.0.0.1', ports: [port] })
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', `--net=${namespace}`, 'nginx', '-p', folder, '-c', join(folder, 'bare.conf')], {
    stdio: ['ignore', 'inherit', 'inherit', ...listeners.descriptors], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NGINX: '3;' }
  })
  listeners.close()
  const exited = once(child, 'exit')
  await accepts(port)
  return {
    async end () {
      child.kill('SIGTERM')
      await exited
    }
  }
}

/** Polled: no event reports that it listens. */
async function accepts (port: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (error) {
      if (tries === 200) throw error
      await delay(25)
    } finally {
      socket.destroy()
    }
  }
}
