// Starts the pages.
import { render } from 'preact'
import './style/all.css'

render(<main>Berth</main>, document.body)
