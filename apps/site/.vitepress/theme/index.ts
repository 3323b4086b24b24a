import theme from "vitepress/theme-without-fonts";
import "./style.css"; // After the theme's, which it overrides.

export default theme;
