// The distribution's Chromium, led by playwright-core; only what the tests use of it is declared.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Test } from 'tap'

const CHROMIUM = '/usr/bin/chromium'
const load = createRequire(import.meta.url)

export interface Locator {
  click (options?: { timeout?: number }): Promise<void>
  fill (text: string): Promise<void>
  selectOption (value: string): Promise<unknown>
  first (): Locator
  getByText (text: string | RegExp): Locator
  getByRole (role: string, options?: { name?: string | RegExp, exact?: boolean }): Locator
  waitFor (options?: { state?: 'visible' | 'hidden', timeout?: number }): Promise<void>
  innerText (): Promise<string>
  count (): Promise<number>
  getByLabel (text: string | RegExp): Locator
  locator (selector: string, options?: { has: Locator }): Locator
  press (key: string): Promise<void>
  inputValue (): Promise<string>
  getAttribute (name: string): Promise<string | null>
  /** @param file or the path of a folder */
  setInputFiles (file: { name: string, mimeType: string, buffer: Buffer } | string): Promise<void>
}
export interface Route {
  fetch (): Promise<{ json (): Promise<unknown>, status (): number }>
  fulfill (answer: { status: number, contentType: string, body: string }): Promise<void>
  /** @param change another address for the same request */
  continue (change?: { url: string }): Promise<void>
}
export interface Page extends Pick<Locator, 'getByRole'> {
  goto (url: string): Promise<unknown>
  reload (): Promise<unknown>
  getByText (text: string | RegExp): Locator
  getByLabel (text: string | RegExp): Locator
  locator (selector: string, options?: { has: Locator }): Locator
  setViewportSize (size: { width: number, height: number }): Promise<void>
  emulateMedia (options: { colorScheme: 'light' | 'dark', reducedMotion: 'reduce' }): Promise<void>
  screenshot (options: { path: string, fullPage?: boolean }): Promise<unknown>
  evaluate<T> (script: string): Promise<T>
  on (event: 'console', listener: (message: { type (): string, text (): string, location (): { url: string } }) => void): void
  on (event: 'pageerror', listener: (error: Error) => void): void
  /** Answers in place of the server. */
  route (url: string, handler: (route: Route) => Promise<void>): Promise<void>
  waitForEvent (event: 'download'): Promise<{ path (): Promise<string> }>
  readonly keyboard: { type (text: string): Promise<void>, press (key: string): Promise<void> }
}
interface Browser {
  newPage (options: { viewport: { width: number, height: number } }): Promise<Page>
  close (): Promise<void>
}
interface Playwright { readonly chromium: { launch (options: { executablePath: string, args: string[] }): Promise<Browser> } }

/** Why there can be no browser. */
export function noBrowser (): string | false {
  return existsSync(CHROMIUM) ? false : 'the command chromium is missing; install the package chromium'
}

export interface Watched { readonly page: Page, readonly complaints: string[] }

/** A page whose complaints are collected: errors of scripts, what the policy refuses, what cannot be loaded. */
export async function openPage (t: Test): Promise<Watched> {
  const { chromium } = load('playwright-core') as Playwright
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  const complaints: string[] = []
  t.teardown(async () => {
    if (!t.passing()) console.error(['the page as it was last:', await page.evaluate<string>('document.body.innerText').catch(String), ...complaints].join('\n'))
    await browser.close()
  })
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(`${message.text()} ${message.location().url}`) })
  page.on('pageerror', (error) => { complaints.push(String(error.stack)) })
  return { page, complaints }
}

/** What axe finds wrong on the page as it is. */
export async function accessibilityFaults (page: Page): Promise<string[]> {
  // It stays until the page is loaded anew.
  if (!await page.evaluate<boolean>('"axe" in window')) await page.evaluate(await readFile(load.resolve('axe-core/axe.min.js'), 'utf8'))
  return await page.evaluate<string[]>(`(async () => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'] })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary))
  })()`)
}
