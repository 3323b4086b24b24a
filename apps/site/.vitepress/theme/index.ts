/// <reference types="vitepress/client" />
import { useData, withBase, type Theme } from "vitepress";
import theme from "vitepress/theme-without-fonts";
import { h, type VNode } from "vue";
import "./style.css"; // After the theme's, which it overrides.

/** The link below a package's page to its API reference. */
function apiLink(): VNode | undefined {
  const [, name] = /^packages\/(.+)\.md$/.exec(useData().page.value.relativePath) ?? [];
  if (name === undefined) return undefined;
  return h("p", { class: "api-link" }, h("a", { href: withBase(`/api/${name}/`) }, `API reference of @fenced/${name}`));
}

export default {
  extends: theme,
  Layout: () => h(theme.Layout, undefined, { "doc-footer-before": () => h(apiLink) }),
} satisfies Theme;
