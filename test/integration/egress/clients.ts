// From inside of a real machine, against real origins with an authority of their own in another network namespace: what programs say and hear goes through
// unchanged. Run by clients.long.test.ts in a network namespace of its own.
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import { runCases } from './cases/run.ts'
import { events, grpc, socket } from './cases/streams.ts'
import { git, packages, registry } from './cases/tools.ts'
import { expectContinue, furtherPort, largeBodies, nodeClients, statusesAndHeaders, usualClients } from './cases/web.ts'
import { pushBareImage, pushDebianImage } from './image.ts'
import { checkPlacement } from './stage.ts'
import { createVm, openWorld, type World } from './vm.ts'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t)
  const stage = await createVm(world, await pushDebianImage(world.server), 'all', 'clients')
  t.comment(`up after ${Math.round(performance.now())} ms`)
  const cases: Readonly<Record<string, (t: Test) => Promise<unknown>>> = {
    'P16: curl, wget, Python and openssl s_client': async (t) => await usualClients(t, stage),
    'a further port': async (t) => await furtherPort(t, stage),
    'P1, P2, P5, P6, P11: Node with HTTP/1.1, HTTP/2 and fetch': async (t) => await nodeClients(t, stage),
    'P3, P5, P6, P25, A45: statuses, headers and compressed bytes; a credential that comes back is the mock': async (t) => await statusesAndHeaders(t, stage),
    'P8: 32 MB down and up': async (t) => await largeBodies(t, stage),
    'P4, A43: a body that waits for 100 Continue': async (t) => await expectContinue(t, stage),
    'P15: git clone and push with Basic, in chunks': async (t) => await git(t, stage),
    'P14: a registry push with a token and a pull with Basic, with blobs at another host': async (t) => await registry(t, stage),
    'P16: npm, pip and apt': async (t) => await packages(t, stage),
    'P12: gRPC with every kind of call, trailers, failures and deadlines': async (t) => await grpc(t, stage),
    'P10: a WebSocket with text, bytes, pings and compression, and one that is refused': async (t) => await socket(t, stage),
    'P7: server-sent events come one by one': async (t) => await events(t, stage),
    'P16: an image without any authority, and mode http_https_only': async (t) => await bare(t, world)
  }
  // A commit tries a quarter of them; the proxy's own tests play all of what these clients do.
  await runCases(Object.fromEntries(shareOfCommit(Object.entries(cases), 4)))
}

async function bare (t: Test, world: World): Promise<void> {
  const stage = await createVm(world, await pushBareImage(world.server), 'http_https_only', 'bare')
  await usualClients(t, stage)
  checkPlacement(t, await world.outside.seen(), world.secrets)
  await world.server.sdk.instances.delete(stage.id)
}
