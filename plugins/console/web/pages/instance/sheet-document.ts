// The terminal's library puts its rules into <style> elements, which our policy forbids, since anybody could add such elements. It gets a document whose style elements
// pass their text to style sheets that a script made, which the policy allows.

export function documentWithoutInlineStyle (): { readonly ownDocument: Document, dispose (): void } {
  const sheets: CSSStyleSheet[] = []
  const makeStyle = (): HTMLElement => {
    const sheet = new CSSStyleSheet()
    sheets.push(sheet)
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    const element = document.createElement('span')
    element.hidden = true
    let text = ''
    Object.defineProperty(element, 'textContent', { get: () => text, set: (rules: string) => { text = rules; sheet.replaceSync(rules) } })
    Object.defineProperty(element, 'sheet', { get: () => sheet })
    return element
  }
  const ownDocument = new Proxy(document, {
    get (target, key) {
      if (key === 'createElement') return (name: string, options?: ElementCreationOptions) => name === 'style' ? makeStyle() : target.createElement(name, options)
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (target, key, value) => Reflect.set(target, key, value, target)
  })
  return { ownDocument, dispose: () => { document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet)) } }
}
