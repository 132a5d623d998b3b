// A server's folder that is made here, with the guests' system and an image: on an emulated host that would take minutes.
import { cp } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Test } from 'tap'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'

/** Leaves the folder at `place`, and gives the name of the image. @param during what else is done before the server stops */
export async function prepareServer (t: Test, place: string, name: string, during: (server: TestServer, image: string) => Promise<void> = async () => {}): Promise<string> {
  const server = await startTestServer(t)
  const image = await push(server, await busyboxImage(), `${name}/busybox:latest`)
  await during(server, image)
  await server.stop()
  const isLeft = (file: string): boolean => file === 'server.log' || file.startsWith('headers-') || file.endsWith('.sock')
  await cp(server.folder, place, { recursive: true, filter: (source) => !isLeft(basename(source)) })
  return image
}
