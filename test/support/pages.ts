/** Pages of one browser per test file, closed with their test. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, expect, onTestFinished } from 'vitest'
import { launchChromium } from './browser.ts'

type PageOptions = Parameters<Browser['newPage']>[0]

let browser: Promise<Browser> | undefined
afterAll(async () => {
  await (await browser)?.close()
})

/** A blank page. */
export async function newPage(options: PageOptions = {}): Promise<Page> {
  browser ??= launchChromium()
  const page = await (await browser).newPage(options)
  onTestFinished(() => page.close())
  return page
}

/** Open the inspector and wait until it is connected. Whatever the browser complains of fails the test. */
export async function openPage(port: number, options: PageOptions = {}): Promise<Page> {
  const page = await newPage(options)
  const complaints: string[] = []
  page.on(
    'console',
    (message) => void (['error', 'warning'].includes(message.type()) && complaints.push(message.text())),
  )
  page.on('pageerror', (error) => void complaints.push(String(error)))
  page.on(
    'request',
    (request) =>
      void (new URL(request.url()).host !== `127.0.0.1:${port}` && complaints.push(`asked ${request.url()}`)),
  )
  onTestFinished(() => expect(complaints).toEqual([]))
  await page.goto(`http://127.0.0.1:${port}/`)
  await page.locator('#connection[data-status=live]').waitFor()
  return page
}
