// What a page has open while nobody sees it: the page's own code, with a document and streams that the test leads.
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { pageModule } from './page-module.ts'

interface Page {
  followLive (): () => void
  onChange (listener: (event: unknown) => void): () => void
  readonly connection: { readonly value: { readonly state: string } }
}

class Stream extends EventTarget {
  static readonly CLOSED = 2
  static readonly all: Stream[] = []
  static get open (): number { return Stream.all.filter(({ readyState }) => readyState !== Stream.CLOSED).length }
  readonly url: string
  readyState = 1

  constructor (url: string) {
    super()
    this.url = url
    Stream.all.push(this)
  }

  tell (event: { readonly type: string, readonly id: string }): void { this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(event), lastEventId: event.id })) }
  close (): void { this.readyState = Stream.CLOSED }
}

class Tab extends EventTarget {
  visibilityState = 'visible'

  see (isSeen: boolean): void {
    this.visibilityState = isSeen ? 'visible' : 'hidden'
    this.dispatchEvent(new Event('visibilitychange'))
  }
}

t.test('a page that nobody sees takes none of the few connections of a browser, and reads everything when it is seen again', async (t) => {
  const { page, tab } = await openPage(t)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const heard: unknown[] = []
  page.onChange((event) => heard.push(event))
  const leave = page.followLive()
  Stream.all.at(-1)?.tell({ type: 'ready', id: '7' })
  t.same([Stream.open, page.connection.value.state, heard], [1, 'live', []])
  tab.see(false)
  mock.timers.tick(4000)
  tab.see(true)
  mock.timers.tick(60_000)
  t.equal(Stream.all.length, 1, 'a short look at another tab changes nothing')
  tab.see(false)
  mock.timers.tick(60_000)
  t.equal(Stream.open, 0)
  tab.see(true)
  t.equal(Stream.open, 1)
  t.equal(Stream.all.at(-1)?.url, '/events?after=7', 'what happened meanwhile is told')
  t.same(heard, [])
  Stream.all.at(-1)?.tell({ type: 'ready', id: '7' })
  t.same(heard, ['everything'])
  tab.see(false)
  leave()
  tab.see(true)
  mock.timers.tick(60_000)
  t.equal(Stream.open, 0, 'one that was left opens nothing')
  tab.see(false)
  page.followLive()
  t.equal(Stream.open, 0, 'nor does one that is opened in the background')
  tab.see(true)
  t.same([Stream.open, Stream.all.at(-1)?.url], [1, '/events'])
})

async function openPage (t: Test): Promise<{ page: Page, tab: Tab }> {
  const tab = new Tab()
  Object.assign(globalThis, { document: tab, EventSource: Stream })
  t.teardown(() => { for (const name of ['document', 'EventSource']) Reflect.deleteProperty(globalThis, name) })
  return { page: await pageModule<Page>(t, 'state/live.ts'), tab }
}
