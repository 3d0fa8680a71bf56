// Before anything is painted: light or dark, as chosen here or as the system says.
"use strict";
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
