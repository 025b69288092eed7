// Lets search work where the site is opened as files: browsers start no Worker from file://, so a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const page = this.frame.contentDocument;
      page.open();
      page.write(`<script>
        var postMessage = data => parent.dispatchEvent(new MessageEvent("frame worker", { data, source: window }));
        var importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(done => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = script.onerror = done;
          document.head.appendChild(script);
        })), Promise.resolve());
      </script><script src="${url}"></script>`);
      page.close();
      window.addEventListener("frame worker", event => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
    }
    postMessage(data) {
      const send = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      if (this.frame.contentDocument.readyState === "complete") send();
      else this.frame.addEventListener("load", send, { once: true });
    }
    terminate() {
      this.frame.remove();
    }
  };
}
