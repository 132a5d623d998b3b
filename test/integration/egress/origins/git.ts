// A git server over HTTPS as hosters run it: git's own program for it behind a login.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createHostCommands } from '../../../../core/process/run.ts'
import { valuesOf, type Answering } from './host.ts'

/** Makes a repository with one commit that may be pushed to, and answers for it at `/project.git`. @param login what `Authorization` must be */
export async function createGit (folder: string, login: () => string): Promise<Answering> {
  const { run } = createHostCommands()
  const work = join(folder, 'work')
  const bare = join(folder, 'repositories/project.git')
  const git = async (...args: readonly string[]): Promise<void> => {
    await run('git', ['-c', 'user.name=Somebody', '-c', 'user.email=somebody@good.test', '-c', 'init.defaultBranch=main', ...args], { env: { GIT_CONFIG_NOSYSTEM: '1', HOME: folder } })
  }
  await git('init', '--quiet', work)
  await git('-C', work, 'commit', '--quiet', '--allow-empty', '--message', 'the first commit of the origin')
  await git('clone', '--quiet', '--bare', work, bare)
  await git('-C', bare, 'config', 'http.receivepack', 'true')
  return async (call) => {
    const { request, response } = call
    if (valuesOf(request.rawHeaders, 'authorization').join() !== `Basic ${login()}`) return call.answer(401, 'who are you?', { 'www-authenticate': 'Basic realm="git"' })
    const header = (name: string): string => String(request.headers[name] ?? '')
    const child = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder, GIT_CONFIG_NOSYSTEM: '1', GIT_PROJECT_ROOT: join(folder, 'repositories'), GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'user',
        PATH_INFO: call.path, QUERY_STRING: call.query.toString(), REQUEST_METHOD: request.method ?? '', CONTENT_TYPE: header('content-type'),
        HTTP_CONTENT_ENCODING: header('content-encoding'), GIT_PROTOCOL: header('git-protocol'), SERVER_PROTOCOL: 'HTTP/1.1'
      }
    })
    child.stdin.on('error', () => {})
    child.stdin.end(await call.body())
    const parts: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => parts.push(chunk))
    await once(child, 'close')
    const output = Buffer.concat(parts)
    const end = output.indexOf('\r\n\r\n')
    const headers = Object.fromEntries(output.subarray(0, end).toString('latin1').split('\r\n').map((line) => {
      const [name = '', ...rest] = line.split(':')
      return [name.toLowerCase(), rest.join(':').trim()]
    }))
    const { status = '200', ...others } = headers
    call.answer(Number.parseInt(status), output.subarray(end + 4), others)
    response.on('close', () => child.kill())
  }
}
