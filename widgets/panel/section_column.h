// SectionColumn: a scroll area of stacked sections, as every panel at the right is. GUI thread only.
#pragma once

#include <vector>

#include <QScrollArea>

#include "widgets/panel/panel_parts.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"

class QVBoxLayout;

namespace stagewright {

class SectionColumn : public QScrollArea {
    Q_OBJECT
public:
    explicit SectionColumn(QWidget* parent = nullptr);
    PanelSection* addSection(const QString& title);
    void addWidget(QWidget* widget);
    void finish(); // after the last section: stretch, no last rule
    virtual void setTheme(const Theme& theme);
    const Theme& theme() const { return *m_theme; }
    QString plainText() const;
    // of every visible section, by their keys of `report --json`
    std::vector<std::pair<QString, QString>> figures() const;
    TableText table() const; // of every visible section, its title in the first column

private:
    QVBoxLayout* m_layout;
    std::vector<PanelSection*> m_sections;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
