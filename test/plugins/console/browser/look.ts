// Looks at one page as a person, a screen reader and a tester would: in two colours and three widths, with axe, and for markup that came from outside.
import { join } from 'node:path'
import type { Test } from 'tap'
import { packageRoot } from '../../../../core/package-root.ts'
import { DELETED } from '../../../../setup/structure/deleted.ts'
import { accessibilityFaults, type Page } from '../../../helpers/browser.ts'
import { goTo, PATIENCE, type Operator } from './operator.ts'

/** `BERTH_PICTURES` names the folder for one picture of each page, colour and width. For people: without it none is made, since painting them takes most of a run's time. */
const PICTURES = process.env['BERTH_PICTURES']
const WIDTHS = [{ width: 360, height: 800 }, { width: 1440, height: 900 }, { width: 3840, height: 2160 }] as const

interface PageView {
  /** what is behind `#/` */
  readonly place: string
  /** stands on the page when it has read what it shows */
  readonly shown: string | RegExp
  /** of the pictures; absent: the place */
  readonly name?: string
  /** what is done on the page before it is looked at */
  readonly act?: (page: Page) => Promise<void>
  /** the server may answer 404, since plugins are off */
  readonly absent?: boolean
}

/** What is open on the page as it is, such as a dialog. */
interface OpenView { readonly isOpen: true, readonly name: string }

export async function look (t: Test, operator: Operator, view: PageView | OpenView): Promise<void> {
  const { page, complaints } = operator
  if (!('isOpen' in view)) await open(operator, view)
  const name = 'isOpen' in view ? view.name : view.name ?? view.place
  for (const colorScheme of ['light', 'dark'] as const) {
    // Half-way from one colour to the other nothing has enough contrast.
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    t.same(await accessibilityFaults(page), [], `${name}, ${colorScheme}`)
    // What fits does so in either colour.
    for (const size of colorScheme === 'light' || PICTURES !== undefined ? WIDTHS : []) {
      await page.setViewportSize(size)
      t.ok(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth'), `${name} fits into ${size.width} pixels`)
      if (PICTURES !== undefined) await page.screenshot({ path: join(packageRoot, PICTURES, `${name.replaceAll('/', '-')}-${colorScheme}-${size.width}.png`) })
    }
    await page.setViewportSize(WIDTHS[1])
  }
  t.same(await page.evaluate<string[]>('[...document.querySelectorAll("body img, body script, body b, body iframe, body style, a[href^=javascript]")].map(({ outerHTML }) => outerHTML)'), [], `${name} has no markup of somebody else's`)
  // That an instance has no schedule, and that ingress is turned off, are answers, which the browser counts as faults.
  const lacksPlugins = DELETED.length > 0 || ('absent' in view && view.absent === true)
  const expected = lacksPlugins ? /status of 404 / : /status of 404 .*\/(snapshot-schedule|ingresses)$/
  t.same(complaints.splice(0).filter((line) => !expected.test(line)), [], `${name}: neither a script nor the policy complains`)
}

async function open (operator: Operator, { place, shown, act }: PageView): Promise<void> {
  const { page } = operator
  await goTo(operator, place)
  await page.locator('h1').first().waitFor(PATIENCE)
  await act?.(page)
  await page.locator('main').getByText(shown).first().waitFor(PATIENCE)
  await page.locator('.wait').first().waitFor({ state: 'hidden', ...PATIENCE })
}
