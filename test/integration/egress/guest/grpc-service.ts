// The gRPC service of the tests, for both ends. Its messages are bytes as they are, so it needs no description of types.
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'

function method (name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  const bytes = (value: Buffer): Buffer => value
  return { path: `/berth.test.Bytes/${name}`, requestStream, responseStream, requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes }
}

export const SERVICE = {
  single: method('Single', false, false),
  many: method('Many', false, true),
  collect: method('Collect', true, false),
  talk: method('Talk', true, true),
  fail: method('Fail', false, false),
  wait: method('Wait', false, false)
} satisfies ServiceDefinition
