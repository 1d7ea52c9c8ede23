#include "widgets/panel/section_column.h"

#include <QVBoxLayout>

#include "widgets/literals.h"

namespace stagewright {

SectionColumn::SectionColumn(QWidget* parent) : QScrollArea(parent)
{
    auto* body = new QWidget(this);
    body->setObjectName(u"panelBody"_s);
    m_layout = new QVBoxLayout(body);
    m_layout->setContentsMargins(18, 18, 18, 14);
    m_layout->setSpacing(15);
    body->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // as wide as the panel, whatever its content
    setWidget(body);
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    makeCopyable(this, [this] { return table(); });
}

PanelSection* SectionColumn::addSection(const QString& title)
{
    auto* section = new PanelSection(title, widget());
    m_layout->addWidget(section);
    m_sections.push_back(section);
    return section;
}

void SectionColumn::addWidget(QWidget* widget) { m_layout->addWidget(widget); }

void SectionColumn::finish()
{
    m_layout->addStretch(1);
    if (!m_sections.empty()) m_sections.back()->setRuled(false);
}

void SectionColumn::setTheme(const Theme& theme)
{
    m_theme = &theme;
    for (PanelSection* section : m_sections) section->setTheme(theme);
}

TableText SectionColumn::table() const
{
    TableText all;
    for (const PanelSection* section : m_sections) {
        if (!section->isVisibleTo(widget())) continue;
        const TableText one = section->table();
        for (const QStringList& row : one.rows) all.rows << QStringList{one.title} + row;
    }
    return all;
}

std::vector<std::pair<QString, QString>> SectionColumn::figures() const
{
    std::vector<std::pair<QString, QString>> all;
    for (const PanelSection* section : m_sections)
        if (section->isVisibleTo(widget())) all.insert(all.end(), section->figures().begin(), section->figures().end());
    return all;
}

QString SectionColumn::plainText() const
{
    QStringList texts;
    for (const PanelSection* section : m_sections)
        if (section->isVisibleTo(widget())) texts << section->plainText();
    return texts.join("\n\n"_L1);
}

} // namespace stagewright
