// What flows in both directions, or for long: gRPC, WebSocket and server-sent events.
import type { Test } from 'tap'
import { ORIGINS } from '../origins/contract.ts'
import { EVENTS } from '../origins/events.ts'
import { valuesOf } from '../origins/host.ts'
import { checkPlacement, succeed, watched, type Stage } from '../stage.ts'

export async function grpc (t: Test, stage: Stage): Promise<void> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, `node /clients/grpc.js ${ORIGINS.grpc}:443 "$API_KEY"`))
  t.same(JSON.parse(result), {
    first: ['at the beginning'], single: true, status: 0, trailer: ['at the end'],
    many: ['1', '12', '123', '1234', '12345'], collect: 'abc', talk: ['one', 'two', 'three'],
    fail: [9, 'not now: 50 % of it', ['tested']], deadline: 4
  })
  t.same(seen.map(({ url }) => url), ['single', 'many', 'collect', 'talk', 'fail'])
  for (const { headers } of seen) t.same(valuesOf(headers, 'x-of-the-guest'), ['kept'])
  checkPlacement(t, seen, stage.secrets)
}

export async function socket (t: Test, stage: Stage): Promise<void> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, `node /clients/socket.js wss://${ORIGINS.socket}/echo "$API_KEY"`))
  t.same(JSON.parse(result), {
    welcome: 'welcome', protocol: 'echo.v1', extensions: 'permessage-deflate', text: 'some words, some words, some words', bytes: true, pong: 'are you there?', closed: 4321,
    refused: [401, 'tested', 'not so']
  })
  t.same(seen.map(({ url }) => url), ['/echo', '/refused'])
  checkPlacement(t, seen, stage.secrets)
}

export async function events (t: Test, stage: Stage): Promise<void> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, `timeout 300 node /clients/events.js https://${ORIGINS.events}`))
  t.same(JSON.parse(result), { type: 'text/event-stream', seen: Array.from({ length: EVENTS }, (_, index) => index + 1) })
  t.equal(seen.length, EVENTS + 1)
  checkPlacement(t, seen, stage.secrets)
}
