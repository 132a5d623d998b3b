// Somebody with the API's key at the console of a real server with real machines, in a network namespace of the test's own.
import type { Test } from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { missingPrivileges } from '../../../../plugins/networking/privileges.ts'
import { noBrowser, openPage, type Page } from '../../../helpers/browser.ts'
import { busyboxImage, push } from '../../../helpers/images.ts'
import { ownNetwork } from '../../../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../../../helpers/server.ts'

/** How long a machine may take to do what a button says. */
export const PATIENCE = { timeout: 120_000 }

export interface Operator {
  readonly server: TestServer
  readonly page: Page
  readonly complaints: string[]
  /** name of a busybox in the server's own registry */
  readonly image: string
}

/** Why none of this can be tried here. */
export function cannot (): string | false {
  return noBrowser() || (missingPrivileges() ?? false)
}

/** A server with networks and copies of booted machines, an image, and a browser that has not logged in. */
export async function startOperator (t: Test, plugins: Readonly<Record<string, { readonly enabled?: boolean, readonly config?: Readonly<Record<string, unknown>> }>> = {}): Promise<Operator> {
  await createHostCommands().run('ip', ['link', 'set', 'lo', 'up'])
  const networking = { config: { uplink: 'none', ...ownNetwork() } }
  const server = await startTestServer(t, { plugins: { networking, ...plugins } })
  const image = await push(server, await busyboxImage(), 'console/shell:latest')
  return { server, image, ...await openPage(t) }
}

export async function logIn ({ server, page }: Pick<Operator, 'server' | 'page'>, key = server.key): Promise<void> {
  await page.goto(`${server.url}/console/`)
  await giveKey(page, key)
}

/** On the page that asks for it. */
export async function giveKey (page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
}

/** @param place what is behind `#/` */
export async function goTo ({ server, page }: Pick<Operator, 'server' | 'page'>, place: string): Promise<void> {
  await page.goto(`${server.url}/console/#/${place}`)
}

export async function idOf ({ server }: Pick<Operator, 'server'>, name: string): Promise<string> {
  const { id } = await server.api.call('GET', `/instances/${name}`) as { readonly id: string }
  return id
}
