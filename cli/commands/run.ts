// `berth run`: creates an instance from an image and follows it to its end.
import type { Api } from '../api/client.ts'
import { parseJson } from '../api/json.ts'
import { path } from '../api/path.ts'
import { events } from '../api/sse.ts'
import { createBody, type CreateBody } from '../create-body.ts'
import { EXIT } from '../exit-codes.ts'
import { executeHere } from '../exec/on-this-terminal.ts'
import { Failure, wrongUsage } from '../failure.ts'
import { printMade } from '../output/made.ts'
import { clean } from '../../core/clean-text.ts'
import { writeAll } from '../output/write.ts'
import { pullImage } from '../pull.ts'
import type { Session } from '../session.ts'
import type { Run } from '../spec.ts'
import type { Image, Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const isTerminal = input.flag('interactive') || input.flag('tty')
  const detach = input.flag('detach')
  if (detach && (isTerminal || input.flag('rm'))) throw wrongUsage('-d goes without -i, -t and --rm')
  const body = await createBody(input, session.environment)
  const image = await pullImage(session, api, body.image)
  session.progress.step(`${body.name}: starting`)
  let made: Instance | undefined
  try {
    // Not given up on Ctrl-C: the server would make it all the same, and only its answer says what is to be ended.
    made = await api.call<Instance>('POST', '/instances', { body: isTerminal ? { ...body, entrypoint: [], cmd: RESTING } : body, isUndo: true })
    session.interrupted.throwIfAborted()
    session.progress.end()
    if (detach) return await printMade(session, made)
    return isTerminal
      ? await executeHere(session, api, { instance: made.id, command: commandOf(body, image), tty: input.flag('tty'), interactive: true, waitSeconds: AGENT_SECONDS })
      : await followed(api, made)
  } finally {
    // Ctrl-C and a closed terminal stop the machine, as they would end a program.
    if (made !== undefined && input.flag('rm')) await api.call('DELETE', path`/instances/${made.id}`, { query: { graceful_shutdown: false }, isUndo: true }).catch(unlessGone(session))
    else if (made !== undefined && (isTerminal || session.interrupted.aborted)) await api.call('POST', path`/instances/${made.id}/stop`, { isUndo: true }).catch(unlessGone(session))
  }
}

/** The machine's own program while a command runs in it on a terminal. */
const RESTING = ['/bin/sh', '-c', 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done']
const AGENT_SECONDS = 120

function commandOf (body: CreateBody, image: Image): string[] {
  const entrypoint = body.entrypoint ?? image.entrypoint ?? []
  const cmd = body.cmd ?? (body.entrypoint === undefined ? image.cmd ?? [] : [])
  return [...entrypoint, ...cmd]
}

/** Prints the program's output until the instance has stopped; returns the program's exit code. */
async function followed (api: Api, { id }: Instance): Promise<number> {
  const answer = await api.stream('GET', path`/instances/${id}/logs`, { query: { follow: true, tail: 1_000_000 } })
  for await (const { data } of events(answer, api.target)) await writeAll(process.stdout, `${String(parseJson(data))}\n`)
  const ended = await api.call<Instance>('GET', path`/instances/${id}`)
  if (ended.state !== 'Stopped') throw new Failure(`${ended.name} is ${ended.state}; its output is at an end here`, { exitCode: EXIT.berthFailed, hint: `berth logs -f ${ended.name} goes on with it` })
  if (ended.exit_code == null) throw new Failure(`${ended.name} ended without an exit code${ended.exit_message == null ? '' : `: ${ended.exit_message}`}`, { exitCode: EXIT.berthFailed })
  if (ended.exit_code !== 0 && ended.exit_message != null) process.stderr.write(`${clean(`berth: ${ended.name}: ${ended.exit_message}`)}\n`)
  return ended.exit_code
}

function unlessGone (session: Session): (error: unknown) => void {
  return (error) => {
    if (error instanceof Failure && error.exitCode === EXIT.notFound) return
    session.complain(error instanceof Failure ? error : new Failure(String(error)))
  }
}
